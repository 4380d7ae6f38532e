// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwright/error.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Whether a rank's file is as long as it was written, by what stands at its end: one small read.
/// What is no archive (torch before 1.6) tells nothing there and is opened. Errors: those of
/// zip::Archive::check_end and of TorchFile.
[[nodiscard]] Status check_rank_file_end(const Directory& directory, const std::string& path);

}  // namespace shardwright
