// SPDX-License-Identifier: Apache-2.0
#include "canonical/repeated_rows.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "compare/tensor_values.h"

namespace shardwright {
namespace {

// Whether the second block has all HF elements of the first.
bool holds_all_of(const Block& whole, const Block& part) {
  const auto extents = [](const Block& block) {
    Dims shape = Dims::filled(block.hf_origin.size(), 1);
    for (int axis = 0; axis < block.shape.size(); ++axis) {
      if (block.hf_axis[axis] < 0) continue;
      const int h = static_cast<int>(block.hf_axis[axis]);
      shape[h] = (block.shape[axis] - 1) * block.hf_step[axis] + 1;
    }
    return shape;
  };
  const Dims outer = extents(whole);
  const Dims inner = extents(part);
  for (int h = 0; h < outer.size(); ++h) {
    const std::int64_t at = part.hf_origin[h] - whole.hf_origin[h];
    if (at < 0 || at + inner[h] > outer[h]) return false;
  }
  return std::ranges::all_of(whole.hf_step, [](std::int64_t step) { return step == 1; });
}

// Reads, in the shape of `shown`, the Megatron elements of block `read` that have the same HF
// elements.
TensorView view_of_first(const Block& shown, const Block& read, const CanonicalTensor& source) {
  const int lead = source.layer >= 0 ? 1 : 0;
  const int axes = shown.shape.size();
  TensorView view{
      Box::whole(shown.shape), source.stored, {}, Dims::filled(axes, -1), Dims::filled(axes, 1)};
  if (lead == 1) view.source_origin.push_back(source.layer);
  for (int axis = 0; axis < read.shape.size(); ++axis) {
    const std::int64_t h = read.hf_axis[axis];
    const std::int64_t ahead =
        h < 0 ? 0 : shown.hf_origin[static_cast<int>(h)] - read.hf_origin[static_cast<int>(h)];
    view.source_origin.push_back(read.megatron_origin[axis] + ahead);
    for (int target = 0; h >= 0 && target < axes; ++target) {
      if (shown.hf_axis[target] != h) continue;
      view.axis[target] = axis + lead;
      view.step[target] = shown.hf_step[target];
    }
  }
  return view;
}

// The block itself, whichever HF elements it has.
TensorView view_of_own(const Block& shown, const CanonicalTensor& source) {
  const int lead = source.layer >= 0 ? 1 : 0;
  const int axes = shown.shape.size();
  TensorView view{Box::whole(shown.shape), source.stored, {}, {}, Dims::filled(axes, 1)};
  if (lead == 1) view.source_origin.push_back(source.layer);
  for (int axis = 0; axis < axes; ++axis) {
    view.source_origin.push_back(shown.megatron_origin[axis]);
    view.axis.push_back(axis + lead);
  }
  return view;
}

class RepeatedRows {
 public:
  RepeatedRows(const Correspondence& correspondence, std::span<const CanonicalTensor> canonical,
               const Catalog& catalog)
      : correspondence_(correspondence) {
    for (const Block& block : correspondence.blocks) {
      if (block.repeats) repeating_.push_back(&block);
    }
    if (repeating_.empty()) return;
    plan_.source = catalog;
    for (const CanonicalTensor& tensor : canonical) by_name_.emplace(tensor.desc.name, &tensor);
    std::set<std::uint32_t> shared;
    for (const Block* block : repeating_) shared.insert(block->hf);
    for (const Block& block : correspondence.blocks) {
      if (!block.repeats && shared.contains(block.hf)) first_[block.hf].push_back(&block);
    }
  }

  // The tensors, of the order in which they come, whose rows differ from the first.
  Result<std::vector<std::string>> differing(SourceFiles& files) {
    for (const Block* block : repeating_) SW_TRY(add(*block));
    std::vector<std::string> found;
    if (repeating_.empty()) return found;
    TensorValues values(plan_, files);
    for (std::size_t i = 0; i < repeating_.size(); ++i) {
      const std::string& name = correspondence_.megatron[repeating_[i]->megatron].desc.name;
      const bool is_known = !found.empty() && found.back() == name;
      if (!is_known && !SW_TRY(are_equal(values, 2 * i))) found.push_back(name);
    }
    return found;
  }

 private:
  Status add(const Block& block) {
    const MappedTensor& megatron = correspondence_.megatron[block.megatron];
    const auto& others = first_[block.hf];
    const auto first = std::ranges::find_if(
        others, [&](const Block* other) { return holds_all_of(*other, block); });
    const CanonicalTensor* own = find(megatron.desc.name);
    const CanonicalTensor* source =
        first == others.end() ? nullptr
                              : find(correspondence_.megatron[(*first)->megatron].desc.name);
    if (own == nullptr || source == nullptr) {
      return fail(Code::kInternal, "tensor {}: nothing has the rows that it repeats",
                  megatron.desc.name);
    }
    for (const CanonicalTensor* tensor : {own, source}) {
      if (covered_.insert(tensor->stored).second) {
        SW_TRY(check_coverage(plan_.source.tensors[tensor->stored]));
      }
    }
    add_target(block, own->desc.dtype, view_of_own(block, *own));
    add_target(block, own->desc.dtype, view_of_first(block, **first, *source));
    return {};
  }

  void add_target(const Block& block, DType dtype, const TensorView& view) {
    plan_.target.tensors.push_back({{"", dtype, block.shape}, ChunkList(block.shape.size())});
    plan_.tensors.push_back({{view}, std::nullopt, 0.0});
  }

  static Result<bool> are_equal(TensorValues& values, std::size_t pair) {
    const TileGrid grid = values.grid(pair);
    for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
      const std::span<const std::byte> own = SW_TRY(values.read(pair, grid.tile(ordinal), 0));
      const std::span<const std::byte> first = SW_TRY(values.read(pair + 1, grid.tile(ordinal), 1));
      if (std::memcmp(own.data(), first.data(), own.size()) != 0) return false;
    }
    return true;
  }

  const CanonicalTensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  const Correspondence& correspondence_;
  std::vector<const Block*> repeating_;
  std::unordered_map<std::uint32_t, std::vector<const Block*>> first_;  // by HF tensor
  std::unordered_map<std::string_view, const CanonicalTensor*> by_name_;
  std::set<std::uint32_t> covered_;
  Plan plan_;  // of each block that repeats two targets: what is there, and what should be
};

}  // namespace

Status check_repeated_rows(const Correspondence& correspondence,
                           std::span<const CanonicalTensor> canonical, const Catalog& catalog,
                           bool accepts_loss, SourceFiles& files, std::vector<std::string>& notes) {
  const std::vector<std::string> found =
      SW_TRY(RepeatedRows(correspondence, canonical, catalog).differing(files));
  if (found.empty()) return {};
  const std::string told = translated(
      "tensor {}{}: found rows that differ from those that they repeat; the model has them once",
      found.front(), found.size() > 1 ? translated(" and {} more", found.size() - 1) : "");
  if (!accepts_loss) {
    return fail(Code::kUnmatchedSource,
                "{}; --accept-loss writes the first of them and drops what training changed in "
                "the others",
                told);
  }
  notes.push_back(told + translated(": the first of them are written"));
  return {};
}

}  // namespace shardwright
