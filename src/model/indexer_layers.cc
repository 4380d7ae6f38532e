// SPDX-License-Identifier: Apache-2.0
#include "model/indexer_layers.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "model/layer_count.h"

namespace shardwright {
namespace {

constexpr std::string_view kFullIndexer = "full";
constexpr std::string_view kSharedIndexer = "shared";

}  // namespace

IndexerTypes types_of_schedule(const IndexerSchedule& schedule, std::int64_t layers) {
  // Megatron counts layers from 1, so the first is always behind no other.
  const std::int64_t offset = std::max<std::int64_t>(schedule.offset, 1);
  IndexerTypes types;
  for (std::int64_t layer = 1; layer <= layers; ++layer) {
    const bool is_full = std::max<std::int64_t>(layer - offset, 0) % schedule.frequency == 0;
    types.emplace_back(is_full ? kFullIndexer : kSharedIndexer);
  }
  return types;
}

Result<std::optional<IndexerSchedule>> schedule_of_types(std::string_view name,
                                                         const IndexerTypes& types,
                                                         std::int64_t layers) {
  SW_TRY(check_layer_count(name, types.size(), layers));
  for (const std::string& type : types) {
    if (type == kFullIndexer || type == kSharedIndexer) continue;
    return fail(Code::kConfigMissing, "{}: found '{}', expected '{}' or '{}'", name, type,
                kFullIndexer, kSharedIndexer);
  }
  const auto first_shared = std::ranges::find(types, kSharedIndexer);
  if (first_shared == types.end()) return std::optional(IndexerSchedule{});
  const auto next_full = std::find(first_shared, types.end(), kFullIndexer);
  // The full layer before the first shared one is the last that the offset counts.
  const IndexerSchedule schedule{next_full - first_shared + 1, first_shared - types.begin()};
  if (types_of_schedule(schedule, layers) != types) return std::optional<IndexerSchedule>();
  return std::optional(schedule);
}

}  // namespace shardwright
