// SPDX-License-Identifier: Apache-2.0
#include "dcp/torch_obstacles.h"

#include <algorithm>
#include <iterator>

#include "base/fail.h"
#include "dcp/rank_metadata.h"
#include "dcp/torch_items.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostItems = 20'000;
constexpr std::size_t kOpenFiles = 64;

bool is_uneven(const ChunkList& chunks) {
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    if (!(chunks.box(i).shape == chunks.box(0).shape)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> metadata_obstacles(const Checkpoint& checkpoint) {
  std::vector<std::string> told;
  if (!checkpoint.location.traits.has_chunk_list) return told;
  const auto metadata = read_any_metadata(*checkpoint.directory, {});
  if (!metadata) return told;
  for (const std::string& obstacle : metadata->torch_obstacles) {
    told.push_back(fmt::format("{}: {}", kDcpMetadata, obstacle));
  }
  // Megatron loads its own.
  const bool is_plain = !checkpoint.location.traits.needs_common_state;
  if (is_plain && metadata->root_class.starts_with("megatron.")) {
    told.push_back(translated("{}: is a {}, which torch loads only where Megatron-Core is there",
                              kDcpMetadata, metadata->root_class));
  }
  return told;
}

std::vector<std::string> torch_obstacles(const Checkpoint& checkpoint) {
  std::vector<std::string> obstacles = metadata_obstacles(checkpoint);
  std::ranges::move(shard_obstacles(checkpoint), std::back_inserter(obstacles));
  return obstacles;
}

std::vector<std::string> shard_obstacles(const Checkpoint& checkpoint) {
  if (!checkpoint.location.traits.has_chunk_list) return {};
  Catalog uneven;
  uneven.files = checkpoint.catalog.files;
  std::size_t items = 0;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    if (tensor.encoding != Encoding::kTorchItem || !is_uneven(tensor.chunks)) continue;
    items += tensor.chunks.size();
    if (items > kMostItems) break;
    uneven.tensors.push_back(tensor);
  }
  if (uneven.tensors.empty()) return {};
  // Files of its own: nothing is added to those of the checkpoint.
  SourceFiles files(*checkpoint.directory, uneven.files, kOpenFiles);
  Defects damaged(Defects::Policy::kCollect);  // which is for others to tell
  auto repaired = locate_items(uneven, files, damaged);
  return repaired ? *std::move(repaired) : std::vector<std::string>();
}

std::string unloadable_text(std::string_view obstacle) {
  return translated(
      "{}; torch itself fails on it or loads something else; a converted copy (--to dcp, for one) "
      "is "
      "described right",
      obstacle);
}

}  // namespace shardwright
