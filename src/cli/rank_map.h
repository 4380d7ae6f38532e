// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/json_writer.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright::cli {

/// The components of a MIMO target and which ranks each has; with `every_rank` also what each rank
/// of the run is.
[[nodiscard]] std::string rank_map_text(std::span<const ComponentRanks> components,
                                        bool every_rank);

/// The same as the member `components` of a JSON object, with every rank.
void write_rank_map(JsonWriter& json, std::span<const ComponentRanks> components);

}  // namespace shardwright::cli
