// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/tower_reader.h"

#include <algorithm>
#include <map>
#include <string>

#include "io/source_files.h"
#include "layout/shard_contents.h"
#include "layout/shard_rule.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kBlockBytes = 4096;
// Every weight of a tower says the same; more than one, because a few may be constants or copies.
constexpr std::size_t kMostWeights = 8;
const std::string kExpertsAsTower = "experts";

// A weight that names say is cut, as each tensor rank has it.
struct HeldWeight {
  const LocatedTensor* tensor = nullptr;
  std::uint32_t file = 0;
};
using Weight = std::map<std::int64_t, HeldWeight>;

struct Tower {
  TowerEvidence evidence;
  std::optional<std::int64_t> width;
  std::map<std::string, Weight> weights;
};

bool is_cut(const LegacyTensor& tensor) {
  const int axes = tensor.place.shape.size();
  const ShardRule rule = shard_rule(tensor.name, axes, false);
  return axes >= 2 && rule.axis >= 0 && !rule.is_expert;
}

bool is_cut_of_expert(const LegacyTensor& tensor) {
  return is_expert_tensor(tensor.name) && tensor.place.shape.size() >= 2;
}

bool is_constant(std::span<const std::byte> block, std::size_t element) {
  if (element == 0 || block.size() <= element) return true;
  return std::equal(block.begin() + static_cast<std::ptrdiff_t>(element), block.end(),
                    block.begin());
}

class TowerReader {
 public:
  TowerReader(const LegacyAxes& axes, SourceFiles& files)
      : tensor_(axes.config.tensor), files_(files) {}

  void add(const LegacyRankFile& file, std::int64_t rank) {
    for (const LegacyModel& model : file.contents.models) {
      const std::vector<TensorDesc> descs = descs_of(model);
      for (const LegacyTensor& tensor : model.tensors) add_tensor(tensor, descs, file.file, rank);
    }
  }

  void add_experts(const LegacyRankFile& file, std::int64_t rank) {
    for (const LegacyModel& model : file.contents.models) {
      for (const LegacyTensor& tensor : model.tensors) {
        if (!is_cut_of_expert(tensor)) continue;
        Tower& tower = towers_[kExpertsAsTower];
        tower.evidence.tower = kExpertsAsTower;
        tower.weights[tensor.name].emplace(rank, HeldWeight{&tensor.place, file.file});
      }
    }
  }

  Result<std::vector<TowerEvidence>> read() {
    std::vector<TowerEvidence> all;
    for (auto& [name, tower] : towers_) {
      if (tower.weights.empty() && !tower.evidence.by_patch) continue;
      SW_TRY(read_bytes(tower));
      all.push_back(std::move(tower.evidence));
    }
    return all;
  }

 private:
  void add_tensor(const LegacyTensor& tensor, std::span<const TensorDesc> descs, std::uint32_t file,
                  std::int64_t rank) {
    const std::string_view name = tower_of(tensor.name);
    if (name.empty()) return;
    const auto [found, is_new] = towers_.try_emplace(std::string(name));
    Tower& tower = found->second;
    if (is_new) {
      tower.evidence.tower = name;
      tower.width = tower_width(descs, name);
      tower.evidence.has_layers = tower.width.has_value();
    }
    const Dims& shape = tensor.place.shape;
    const std::int64_t cuts = patch_cuts({tensor.name, tensor.place.dtype, shape}, descs);
    if (cuts > 1) tower.evidence.by_patch = TowerClue{tensor.name, cuts};
    if (!is_cut(tensor)) return;
    add_projection(tensor, tower);
    tower.weights[tensor.name].emplace(rank, HeldWeight{&tensor.place, file});
  }

  static void add_projection(const LegacyTensor& tensor, Tower& tower) {
    const Dims& shape = tensor.place.shape;
    if (!tensor.name.ends_with(".self_attention.linear_proj.weight") || shape.size() != 2) return;
    const std::int64_t columns = shape[1];
    if (columns < 1 || tower.width != shape[0] || shape[0] % columns != 0) return;
    tower.evidence.by_projection = TowerClue{tensor.name, shape[0] / columns};
  }

  Status read_bytes(Tower& tower) {
    std::vector<TowerClue>& clues = tower.evidence.by_bytes;
    for (const auto& [name, weight] : tower.weights) {
      const std::optional<std::int64_t> period = SW_TRY(period_of(weight));
      if (period) clues.push_back({name, *period});
      if (clues.size() == kMostWeights) break;
    }
    return {};
  }

  // nullopt where the bytes say nothing: a rank's shard is not there or of another size, or all of
  // them are one constant.
  Result<std::optional<std::int64_t>> period_of(const Weight& weight) {
    const std::optional<std::int64_t> unknown;
    const LocatedTensor& first = *weight.begin()->second.tensor;
    const bool is_comparable = std::ranges::all_of(weight, [&](const auto& entry) {
      const LocatedTensor& tensor = *entry.second.tensor;
      return tensor.strides.empty() && tensor.range.length == first.range.length;
    });
    if (!is_comparable || static_cast<std::int64_t>(weight.size()) != tensor_) return unknown;
    const std::uint64_t length = first.range.length;
    const std::uint64_t block = std::min(length, kBlockBytes);
    std::size_t period = 1;
    bool is_known = false;
    for (const std::uint64_t offset : {std::uint64_t{0}, (length - block) / 2, length - block}) {
      std::vector<std::vector<std::byte>> blocks;
      for (const auto& [rank, place] : weight) {
        blocks.emplace_back(static_cast<std::size_t>(block));
        SW_TRY(files_.read_at(place.file, place.tensor->range.offset + offset, blocks.back()));
      }
      period = common_period(blocks, period);
      is_known = is_known || period > 1 ||
                 !is_constant(blocks[0], static_cast<std::size_t>(bytes_of(first.dtype)));
    }
    return is_known ? std::optional(static_cast<std::int64_t>(period)) : unknown;
  }

  // The smallest multiple of `period` with which the blocks repeat. That of all ranks is one.
  static std::size_t common_period(const std::vector<std::vector<std::byte>>& blocks,
                                   std::size_t period) {
    const auto repeats = [&](std::size_t by) {
      if (blocks.size() % by != 0) return false;
      for (std::size_t t = by; t < blocks.size(); ++t) {
        if (blocks[t] != blocks[t % by]) return false;
      }
      return true;
    };
    std::size_t common = period;
    while (!repeats(common)) common += period;
    return common;
  }

  std::int64_t tensor_;
  SourceFiles& files_;
  std::map<std::string, Tower, std::less<>> towers_;
};

}  // namespace

Result<std::vector<TowerEvidence>> read_tower_evidence(const std::vector<LegacyRankFile>& ranks,
                                                       const LegacyAxes& axes, SourceFiles& files) {
  if (axes.config.tensor < 2) return std::vector<TowerEvidence>();
  TowerReader reader(axes, files);
  for (std::size_t i = 0; i < ranks.size(); ++i) reader.add(ranks[i], axes.ranks[i].tensor);
  return reader.read();
}

Result<std::vector<TowerEvidence>> read_expert_evidence(const std::vector<LegacyRankFile>& ranks,
                                                        const LegacyAxes& axes,
                                                        SourceFiles& files) {
  TowerReader reader(axes, files);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    reader.add_experts(ranks[i], axes.ranks[i].tensor);
  }
  return reader.read();
}

}  // namespace shardwright
