// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_parts.h"
#include "io/source_files.h"

namespace shardwright {

/// Refuses to write pickles that run code in a loader into another checkpoint: whoever trusts who
/// converted it would run them. Error: kPickleRunsCode, with the entry and the flag that leaves it
/// out.
[[nodiscard]] Status refuse_hostile_pickles(const TargetParts& parts, SourceFiles& files);

}  // namespace shardwright
