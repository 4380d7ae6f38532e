// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/mimo/source.h"
#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"
#include "shardwright/prepared_conversion.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The component table of a MIMO checkpoint, `shardwright/components/1`: each component's name, the
/// path that its tensors' names begin with, its sizes and its ranks. For people and tools; reading
/// needs only the tensors' names.
[[nodiscard]] std::string write_component_table(std::span<const ComponentRanks> components,
                                                std::int64_t world);

/// What reading a checkpoint's table shows.
struct ComponentTable {
  /// None where it has no table that can be read.
  std::optional<std::vector<RecordedComponent>> components;
  /// What is wrong with it: it can't be read (kJsonCorrupt for what is no such table, kLimit for
  /// one that is too large), or its components are not those of the tensors, do not have the ranks
  /// that their sizes say, or do not share out the run's. Each names the file or the component.
  std::vector<Error> defects;
};

[[nodiscard]] ComponentTable read_component_table(const Checkpoint& checkpoint);

}  // namespace shardwright
