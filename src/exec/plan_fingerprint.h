// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/source_files.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A digest of everything that a plan does: two plans with the same one write the same bytes from
/// the same sources. Host and paths of the checkpoints' folders are not in it.
[[nodiscard]] std::string fingerprint_of(const Plan& plan);

/// A digest of names, sizes and times of change of the files that a plan reads. Opens nothing.
/// Errors: those of looking at them.
[[nodiscard]] Result<std::string> source_fingerprint(const Plan& plan, SourceFiles& files);

}  // namespace shardwright
