// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/json_writer.h"
#include "shardwright/merge.h"

namespace shardwright::cli {

/// The parts of a model: tensors, bytes and types of each, a line for each.
[[nodiscard]] std::string parts_text(std::span<const PartReport> parts);
void write_parts(JsonWriter& json, std::span<const PartReport> parts);

}  // namespace shardwright::cli
