// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/mimo/source.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert.h"
#include "shardwright/diagnose.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The component table of a MIMO checkpoint, `shardwright/components/1`: each component's name, the
/// path that its tensors' names begin with, its sizes and its ranks. For people and tools; reading
/// needs only the tensors' names.
[[nodiscard]] std::string write_component_table(std::span<const ComponentRanks> components,
                                                std::int64_t world);

/// Its components. Errors: kJsonCorrupt for what is no such table, kLimit for one that is too
/// large, those of reading.
[[nodiscard]] Result<std::vector<RecordedComponent>> read_component_table(
    const Directory& directory);

/// What is wrong with the table of a MIMO checkpoint, if it has one: it can't be read, or its
/// components are not those of the tensors, do not have the ranks that their sizes say, or do not
/// share out the run's. Each names the file or the component.
[[nodiscard]] std::vector<Error> component_table_defects(const Checkpoint& checkpoint);

}  // namespace shardwright
