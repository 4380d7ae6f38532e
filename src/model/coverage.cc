// SPDX-License-Identifier: Apache-2.0
#include "model/coverage.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"

namespace shardwright {
namespace {

/// The elements first, first + step, …, `count` of them, of one axis.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 1;
  std::int64_t step = 1;

  [[nodiscard]] std::int64_t last() const { return first + (count - 1) * step; }
};

/// One block on one side: a run per axis of the tensor.
struct Footprint {
  std::vector<Run> runs;
};

bool may_share(const Run& a, const Run& b) {
  if (a.last() < b.first || b.last() < a.first) return false;
  return a.step != b.step || (a.first - b.first) % a.step == 0;
}

bool overlap(const Footprint& a, const Footprint& b) {
  for (std::size_t axis = 0; axis < a.runs.size(); ++axis) {
    if (!may_share(a.runs[axis], b.runs[axis])) return false;
  }
  return true;
}

Footprint on_megatron(const Block& block) {
  Footprint footprint;
  for (int axis = 0; axis < block.shape.size(); ++axis) {
    footprint.runs.push_back(Run{block.megatron_origin[axis], block.shape[axis], 1});
  }
  return footprint;
}

Result<Footprint> on_hf(const Block& block) {
  Footprint footprint;
  for (int axis = 0; axis < block.hf_origin.size(); ++axis) {
    footprint.runs.push_back(Run{block.hf_origin[axis], 1, 1});
  }
  for (int axis = 0; axis < block.shape.size(); ++axis) {
    const std::int64_t hf_axis = block.hf_axis[axis];
    if (hf_axis < 0 && block.shape[axis] == 1) continue;
    if (hf_axis < 0 || hf_axis >= block.hf_origin.size()) {
      return fail(Code::kInternal, "block: found axis {} without an HF axis", axis);
    }
    Run& run = footprint.runs[static_cast<std::size_t>(hf_axis)];
    run = Run{run.first, block.shape[axis], block.hf_step[axis]};
  }
  return footprint;
}

struct Extent {
  const MappedTensor* tensor = nullptr;
  Dims shape;
};

Status check_inside(const Extent& extent, const Footprint& footprint) {
  for (std::size_t axis = 0; axis < footprint.runs.size(); ++axis) {
    const Run& run = footprint.runs[axis];
    if (run.first < 0 || run.step < 1 || run.last() >= extent.shape[static_cast<int>(axis)]) {
      return fail(Code::kOutOfBounds,
                  "tensor {}: found a block at {} of axis {}, expected it "
                  "inside {}",
                  extent.tensor->desc.name, run.first, axis, to_string(extent.shape));
    }
  }
  return {};
}

/// Pairs that meet on axis 0 are compared in full; others are apart already.
Status check_apart(const Extent& extent, std::vector<Footprint>& footprints) {
  if (footprints.size() < 2 || extent.shape.empty()) return {};
  std::ranges::sort(footprints, {}, [](const Footprint& f) { return f.runs[0].first; });
  for (std::size_t i = 0; i < footprints.size(); ++i) {
    for (std::size_t j = i + 1; j < footprints.size(); ++j) {
      if (footprints[j].runs[0].first > footprints[i].runs[0].last()) break;
      if (overlap(footprints[i], footprints[j])) {
        return fail(Code::kOverlap, "tensor {}: found rows at {} twice, expected them once",
                    extent.tensor->desc.name, footprints[j].runs[0].first);
      }
    }
  }
  return {};
}

/// `has_rest`: elements may be left over.
Status check_tensor(const Extent& extent, std::vector<Footprint>& footprints,
                    bool has_rest = false) {
  const std::int64_t due = SW_TRY(element_count(extent.shape));
  std::erase_if(footprints, [](const Footprint& footprint) {
    return std::ranges::any_of(footprint.runs, [](const Run& run) { return run.count == 0; });
  });
  std::int64_t taken = 0;
  for (const Footprint& footprint : footprints) {
    SW_TRY(check_inside(extent, footprint));
    std::int64_t volume = 1;
    for (const Run& run : footprint.runs) volume *= run.count;  // inside, so no overflow
    const auto sum = checked_add(taken, volume);
    taken = sum.value_or(due + 1);
    if (taken > due) break;
  }
  SW_TRY(check_apart(extent, footprints));
  if (taken == due || (has_rest && taken < due)) return {};
  return fail(taken < due ? Code::kHole : Code::kOverlap,
              "tensor {}: found blocks for {} elements, expected {}; the mapping file does not "
              "describe this tensor",
              extent.tensor->desc.name, taken, due);
}

}  // namespace

Status check_blocks(const Correspondence& correspondence) {
  std::vector<std::vector<Footprint>> hf(correspondence.hf.size());
  std::vector<std::vector<Footprint>> megatron(correspondence.megatron.size());
  std::vector<std::int64_t> rows(correspondence.megatron.size(), -1);
  for (const Block& block : correspondence.blocks) {
    if (block.hf >= hf.size() || block.megatron >= megatron.size()) {
      return fail(Code::kInternal, "block: found tensor {} and {}, expected known ones", block.hf,
                  block.megatron);
    }
    if (!block.repeats) hf[block.hf].push_back(SW_TRY(on_hf(block)));
    megatron[block.megatron].push_back(on_megatron(block));
    const MappedTensor& source = correspondence.hf[block.hf];
    if (source.vocabulary && !source.desc.shape.empty()) {
      rows[block.megatron] = source.desc.shape[0];
    }
  }
  for (std::size_t i = 0; i < hf.size(); ++i) {
    const MappedTensor& tensor = correspondence.hf[i];
    SW_TRY(check_tensor(Extent{&tensor, tensor.desc.shape}, hf[i]));
  }
  for (std::size_t i = 0; i < megatron.size(); ++i) {
    const MappedTensor& tensor = correspondence.megatron[i];
    if (tensor.constant) continue;
    Extent extent{&tensor, tensor.desc.shape};
    if (tensor.vocabulary && rows[i] >= 0) extent.shape[0] = std::min(extent.shape[0], rows[i]);
    SW_TRY(check_tensor(extent, megatron[i], tensor.rest.has_value()));
  }
  return {};
}

}  // namespace shardwright
