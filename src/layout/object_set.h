// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layout/lost_parts.h"

namespace shardwright {

/// Which part of a set of objects an entry is: part {2, 5} of {4, 8} of KEY for
/// `KEY/shard_2.5_4.8`. Borrows the name.
struct ObjectPart {
  std::string_view key;
  std::vector<std::int64_t> place;
  std::vector<std::int64_t> sizes;
};

/// nullopt for names of other things.
[[nodiscard]] std::optional<ObjectPart> object_part_of(std::string_view name);

/// The sets that lack a part, by these names of objects. Megatron-Core saves none: see
/// _validate_objects_for_key in megatron/core/dist_checkpointing/validation.py.
[[nodiscard]] std::vector<LostPart> lost_objects(std::span<const std::string> names);

}  // namespace shardwright
