// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/storage.h"

namespace shardwright {

/// Whether a directory that open_directory() gave is a folder whose server shows no list of it:
/// then only files of known names were asked for.
[[nodiscard]] bool is_unlisted(const Directory& directory);

}  // namespace shardwright
