// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// How many steps the optimizer has made, as a Megatron-FSDP checkpoint counts them: with each
/// parameter. Parameters by the names that their settings have (fsdp_settings_of).
struct FsdpSteps {
  std::map<std::string, std::int64_t, std::less<>> by_parameter;
  bool halves_differ = false;  ///< of some parameter: the most counts
  /// Those that have Adam's states, which need a step, and none.
  std::set<std::string, std::less<>> uncounted;
};

/// Reads the steps of a catalog, tensors of any number type or plain objects. REQUIRES: payloads
/// are located. Errors: kStateUnreadable for one that is no count; those of reading.
[[nodiscard]] Result<FsdpSteps> read_fsdp_steps(const Catalog& catalog, SourceFiles& files);

}  // namespace shardwright
