// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// Per layer "full" where an indexer chooses the tokens of sparse attention, "shared" where the
/// layer takes over the choice of the last one that has an indexer.
using IndexerTypes = std::vector<std::string>;

/// Megatron's way to say the same: layers 1 to `offset`, counted from 1, and each `frequency`-th
/// layer behind them have an indexer.
struct IndexerSchedule {
  std::int64_t frequency = 1;
  std::int64_t offset = 0;
  friend bool operator==(const IndexerSchedule&, const IndexerSchedule&) = default;
};

/// The offset of a config.json that gives a frequency alone.
inline constexpr std::int64_t kDefaultIndexerOffset = 2;

/// REQUIRES: schedule.frequency > 0.
[[nodiscard]] IndexerTypes types_of_schedule(const IndexerSchedule& schedule, std::int64_t layers);

/// The schedule with the smallest frequency that gives this list, which has an entry for each
/// layer; nothing where none does. `name`: the list's, for messages. Error: kConfigMissing, for
/// other words and other lengths.
[[nodiscard]] Result<std::optional<IndexerSchedule>> schedule_of_types(std::string_view name,
                                                                       const IndexerTypes& types,
                                                                       std::int64_t layers);

}  // namespace shardwright
