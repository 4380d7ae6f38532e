// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/replica_bytes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/fail.h"
#include "format/legacy/legacy_file.h"
#include "layout/model_head.h"
#include "layout/shard_contents.h"
#include "layout/shard_rule.h"

namespace shardwright {
namespace {

RankFile rank_file_of(const NumberedFolder& folder, std::string_view data, std::int64_t number) {
  const std::string inner = folder.name + "/" + folder.file;
  return {folder.name, data.empty() ? inner : std::string(data) + "/" + inner, number};
}

struct OpenRank {
  std::string folder;
  std::unique_ptr<ReadableFile> file;
  LegacyFile contents;
};

Result<OpenRank> open_rank(const Directory& directory, const RankFile& rank) {
  OpenRank open{rank.folder, SW_TRY(directory.open(rank.path)), {}};
  open.contents = SW_TRY(read_legacy_file(*open.file, LegacyDetail::kPlaces));
  return open;
}

const LegacyTensor* find_tensor(const LegacyModel& model, std::string_view name) {
  const auto found = std::ranges::find(model.tensors, name, &LegacyTensor::name);
  return found == model.tensors.end() ? nullptr : &*found;
}

Result<ReplicaVerdict> compare_bytes(const OpenRank& a, const LegacyTensor& left, const OpenRank& b,
                                     const LegacyTensor& right) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
  const ByteRange& from = left.place.range;
  const ByteRange& to = right.place.range;
  ReplicaVerdict verdict{a.folder, b.folder, left.name, "", 0, 0, 0};
  if (left.place.shape != right.place.shape || from.length != to.length) {
    return fail(Code::kShapeMismatch, "{}: {} in {}, {} in {}", left.name,
                to_string(left.place.shape), a.folder, to_string(right.place.shape), b.folder);
  }
  std::vector<std::byte> ours(std::min(kBlock, from.length));
  std::vector<std::byte> theirs(ours.size());
  for (std::uint64_t at = 0; at < from.length; at += ours.size()) {
    ours.resize(std::min(kBlock, from.length - at));
    theirs.resize(ours.size());
    SW_TRY(a.file->read_at(from.offset + at, ours));
    SW_TRY(b.file->read_at(to.offset + at, theirs));
    verdict.bytes += ours.size() + theirs.size();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (ours[i] == theirs[i]) continue;
      if (verdict.differing == 0) verdict.first_difference = at + i;
      ++verdict.differing;
    }
  }
  return verdict;
}

TensorDesc desc_of(const LegacyTensor& tensor) {
  return {tensor.name, tensor.place.dtype, tensor.place.shape};
}

// The embedding lies in the first folder, that of the first stage.
Result<OutputHeads> heads_by(const Directory& directory, const NumberedFolder& folder,
                             std::string_view data) {
  const OpenRank rank = SW_TRY(open_rank(directory, rank_file_of(folder, data, 0)));
  std::vector<TensorDesc> tensors;
  for (const LegacyModel& model : rank.contents.models) {
    for (const LegacyTensor& tensor : model.tensors) tensors.push_back(desc_of(tensor));
  }
  return OutputHeads(tensors);
}

enum class Expectation : std::uint8_t { kEqual, kOwn, kUnknown };

// What Megatron replicates along tp, whatever the model; of other names it cannot be said.
bool is_replicated_along_tp(std::string_view name) {
  constexpr std::array<std::string_view, 8> kEnds = {
      "layernorm.weight",  "layernorm.bias",   "layer_norm_weight", "layer_norm_bias",
      "mlp.router.weight", "linear_proj.bias", "linear_fc2.bias",   "position_embeddings.weight"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

// Whether ranks along an axis should hold a tensor alike. Experts are another rank's along both.
Expectation expectation(const LegacyTensor& tensor, std::string_view axis,
                        const OutputHeads& heads) {
  if (is_expert_tensor(tensor.name)) return Expectation::kUnknown;
  if (axis == "ep" || is_replicated_along_tp(tensor.name)) return Expectation::kEqual;
  if (heads.has(desc_of(tensor))) return Expectation::kEqual;
  const ShardRule rule = shard_rule(tensor.name, tensor.place.shape.size(), false);
  return rule.axis < 0 ? Expectation::kUnknown : Expectation::kOwn;
}

class AxisComparison {
 public:
  AxisComparison(std::string_view axis, const TowerSizes& towers, const OutputHeads& heads)
      : axis_(axis), towers_(axis == "tp" ? towers : TowerSizes()), heads_(heads) {}

  // The first of the ranks with each of the others, and each rank's shard of a tower with the one
  // that it repeats.
  Status compare(const Directory& directory, const std::vector<RankFile>& ranks) {
    const OpenRank first = SW_TRY(open_rank(directory, ranks.front()));
    std::map<std::string, std::size_t> alike;
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      const OpenRank other = SW_TRY(open_rank(directory, ranks[i]));
      SW_TRY(each_twin(first, other, [&](const LegacyTensor& tensor, const LegacyTensor& twin) {
        return ranks[i].number < size_of(tensor, ranks)
                   ? compare_one(first, tensor, other, twin, alike)
                   : Status();
      }));
      SW_TRY(compare_repeats(directory, ranks, ranks[i], other));
    }
    for (const auto& [name, count] : alike) {
      for (const LegacyModel& model : first.contents.models) {
        const LegacyTensor* tensor = find_tensor(model, name);
        if (tensor == nullptr) continue;
        const auto held =
            std::min(size_of(*tensor, ranks), static_cast<std::int64_t>(ranks.size()));
        if (static_cast<std::int64_t>(count) + 1 >= held) {
          note_repeated(*tensor, static_cast<std::size_t>(held));
        }
      }
    }
    return {};
  }

  RankComparison report;

 private:
  template <class F>
  static Status each_twin(const OpenRank& a, const OpenRank& b, const F& visit) {
    const std::size_t models = std::min(a.contents.models.size(), b.contents.models.size());
    for (std::size_t m = 0; m < models; ++m) {
      for (const LegacyTensor& tensor : a.contents.models[m].tensors) {
        const LegacyTensor* twin = find_tensor(b.contents.models[m], tensor.name);
        if (twin != nullptr) SW_TRY(visit(tensor, *twin));
      }
    }
    return {};
  }

  // How many ranks have shards of their own of a tensor; of what is no tower's, all of them.
  [[nodiscard]] std::int64_t size_of(const LegacyTensor& tensor,
                                     const std::vector<RankFile>& ranks) const {
    return tensor_size_of(tensor.name, towers_, ranks.back().number + 1);
  }

  Status compare_repeats(const Directory& directory, const std::vector<RankFile>& ranks,
                         const RankFile& rank, const OpenRank& other) {
    for (const auto& [tower, size] : towers_) {
      const auto original = std::ranges::find(ranks, rank.number % size, &RankFile::number);
      if (rank.number < size || original == ranks.end()) continue;
      const OpenRank first = SW_TRY(open_rank(directory, *original));
      SW_TRY(each_twin(first, other, [&](const LegacyTensor& tensor, const LegacyTensor& twin) {
        if (tower_of(tensor.name) != tower) return Status();
        return compare_equal(first, tensor, other, twin);
      }));
    }
    return {};
  }

  Status compare_equal(const OpenRank& a, const LegacyTensor& tensor, const OpenRank& b,
                       const LegacyTensor& twin) {
    ReplicaVerdict verdict = SW_TRY(compare_bytes(a, tensor, b, twin));
    report.bytes += verdict.bytes;
    verdict.axis = axis_;
    if (verdict.differing > 0) report.differing.push_back(std::move(verdict));
    return {};
  }

  Status compare_one(const OpenRank& a, const LegacyTensor& tensor, const OpenRank& b,
                     const LegacyTensor& twin, std::map<std::string, std::size_t>& alike) {
    const Expectation expected = expectation(tensor, axis_, heads_);
    // Vectors are alike by chance: biases start as zeros.
    const bool may_repeat =
        tensor.place.shape.size() >= 2 && tensor.place.shape == twin.place.shape;
    if (expected == Expectation::kUnknown) return {};
    if (expected == Expectation::kOwn && !may_repeat) return {};
    ReplicaVerdict verdict = SW_TRY(compare_bytes(a, tensor, b, twin));
    report.bytes += verdict.bytes;
    verdict.axis = axis_;
    if (expected == Expectation::kOwn) {
      if (verdict.differing == 0) ++alike[tensor.name];
    } else if (verdict.differing > 0) {
      report.differing.push_back(std::move(verdict));
    }
    return {};
  }

  void note_repeated(const LegacyTensor& tensor, std::size_t ranks) {
    const ShardRule rule = shard_rule(tensor.name, tensor.place.shape.size(), false);
    Dims joined = tensor.place.shape;
    joined[std::max(rule.axis, 0)] *= static_cast<std::int64_t>(ranks);
    report.repeated.push_back({tensor.name, to_string(joined)});
  }

  std::string_view axis_;
  TowerSizes towers_;
  const OutputHeads& heads_;
};

// Folders that differ in one number only, as groups.
std::vector<std::vector<RankFile>> groups_along(std::span<const NumberedFolder> folders,
                                                std::size_t place, std::string_view data) {
  std::map<std::vector<std::int64_t>, std::vector<const NumberedFolder*>> groups;
  for (const NumberedFolder& folder : folders) {
    std::vector<std::int64_t> others = folder.numbers;
    if (place >= others.size()) continue;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(place));
    groups[others].push_back(&folder);
  }
  std::vector<std::vector<RankFile>> files;
  for (const auto& [others, group] : groups) {
    if (group.size() < 2) continue;
    auto& ranks = files.emplace_back();
    for (const NumberedFolder* folder : group) {
      ranks.push_back(rank_file_of(*folder, data, folder->numbers[place]));
    }
    std::ranges::sort(ranks, {}, &RankFile::number);
  }
  return files;
}

}  // namespace

Result<ReplicaVerdict> compare_replica(const Directory& directory, const RankFile& first,
                                       const RankFile& second, const std::string& tensor) {
  const OpenRank a = SW_TRY(open_rank(directory, first));
  const OpenRank b = SW_TRY(open_rank(directory, second));
  for (std::size_t m = 0; m < std::min(a.contents.models.size(), b.contents.models.size()); ++m) {
    const LegacyTensor* left = find_tensor(a.contents.models[m], tensor);
    const LegacyTensor* right = find_tensor(b.contents.models[m], tensor);
    if (left != nullptr && right != nullptr) return compare_bytes(a, *left, b, *right);
  }
  return fail(Code::kShapeMismatch, "{}: {} is not in both {} and {}", first.path, tensor,
              first.folder, second.folder);
}

Result<RankComparison> compare_ranks(const Directory& directory,
                                     std::span<const NumberedFolder> folders,
                                     const RankLayout& layout) {
  RankComparison all;
  if (folders.empty()) return all;
  const OutputHeads heads = SW_TRY(heads_by(directory, folders.front(), layout.data));
  std::set<std::string> told;
  for (const std::string_view axis : {"ep", "tp"}) {
    const auto place = std::ranges::find(layout.coordinates, axis);
    if (place == layout.coordinates.end()) continue;
    AxisComparison check(axis, layout.towers, heads);
    const auto at = static_cast<std::size_t>(place - layout.coordinates.begin());
    for (const auto& ranks : groups_along(folders, at, layout.data)) {
      SW_TRY(check.compare(directory, ranks));
    }
    std::ranges::move(check.report.differing, std::back_inserter(all.differing));
    for (RepeatedShard& shard : check.report.repeated) {
      if (told.insert(shard.tensor).second) all.repeated.push_back(std::move(shard));
    }
    all.bytes += check.report.bytes;
  }
  return all;
}

}  // namespace shardwright
