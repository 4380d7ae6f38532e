// SPDX-License-Identifier: Apache-2.0
#include "format/flat_states.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "format/bucket_source.h"
#include "layout/bucket_name.h"
#include "layout/layer_name.h"
#include "layout/state_name.h"
#include "plan/canonical.h"
#include "state/reshardable_state.h"
#include "tensor/flat_chunks.h"

namespace shardwright {
namespace {

using Weights = std::unordered_map<std::string_view, const TensorDesc*>;

Weights weights_of(const Catalog& catalog) {
  Weights weights;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!is_optimizer_name(tensor.desc.name)) weights.emplace(tensor.desc.name, &tensor.desc);
  }
  return weights;
}

bool is_flattened(const StoredTensor& state, const Weights& weights) {
  const auto name = split_state_name(state.desc.name);
  if (!name) return false;
  const auto weight = weights.find(name->tensor);
  return weight != weights.end() && !(weight->second->shape == state.desc.shape);
}

// Cells of equal shape, each laid out along the last axis, put back into the weight's shape.
Result<StoredTensor> unflatten(const StoredTensor& state, const StateName& name,
                               const TensorDesc& weight) {
  const Dims& stored = state.desc.shape;
  const int axes = weight.shape.size();
  const auto refuse = [&] {
    return fail(Code::kOptimizerUnsupported,
                "tensor {}: found optimizer state of shape {}, expected the weight's {} or a grid "
                "of its cells; convert without it (--optimizer drop)",
                state.desc.name, to_string(stored), to_string(weight.shape));
  };
  if (stored.size() != axes + 1) return refuse();
  Dims cell;
  for (int axis = 0; axis < axes; ++axis) {
    if (stored[axis] <= 0 || weight.shape[axis] % stored[axis] != 0) return refuse();
    cell.push_back(weight.shape[axis] / stored[axis]);
  }
  if (SW_TRY(element_count(cell)) != stored[axes]) return refuse();
  StoredTensor result{{join_state_name(name.kind, weight.name), state.desc.dtype, weight.shape},
                      ChunkList(axes),
                      Encoding::kRaw};
  for (std::size_t i = 0; i < state.chunks.size(); ++i) {
    const Chunk chunk = state.chunks[i];
    Box box{{}, cell};
    for (int axis = 0; axis < axes; ++axis) {
      if (chunk.box.shape[axis] != 1) return refuse();
      box.origin.push_back(chunk.box.origin[axis] * cell[axis]);
    }
    if (!chunk.strides.empty()) return refuse();
    append_flat_piece(box,
                      {chunk.box.origin[axes], chunk.box.end(axes), chunk.file, chunk.range.offset},
                      bytes_of(state.desc.dtype), result.chunks);
  }
  return result;
}

Status undo_flattened(Catalog& catalog) {
  const Weights weights = weights_of(catalog);
  for (StoredTensor& state : catalog.tensors) {
    const auto name = split_state_name(state.desc.name);
    if (!name) continue;
    const auto weight = weights.find(name->tensor);
    if (weight == weights.end()) {
      return fail(Code::kOptimizerUnsupported,
                  "tensor {}: found optimizer state of no tensor of the model; convert without it "
                  "(--optimizer drop)",
                  state.desc.name);
    }
    if (weight->second->shape == state.desc.shape) {
      state.desc.name = join_state_name(name->kind, name->tensor);
      continue;
    }
    state = SW_TRY(unflatten(state, *name, *weight->second));
  }
  return {};
}

bool is_numbered(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const auto layer = split_layer_name(tensor.desc.name);
    return layer && layer->index && is_main_stack(layer->stack);
  });
}

}  // namespace

bool has_flat_states(const Catalog& catalog) {
  const Weights weights = weights_of(catalog);
  return has_buckets(catalog) ||
         std::ranges::any_of(catalog.tensors, [&](const StoredTensor& tensor) {
           return is_flattened(tensor, weights);
         });
}

Status undo_flat_states(Checkpoint& source, Catalog& catalog) {
  if (source.common_state.empty()) {
    return fail(Code::kOptimizerUnsupported,
                "{}: found optimizer states in flat buffers and no common state that tells the "
                "run's layout; convert without them (--optimizer drop)",
                source.location.path);
  }
  source.common_state =
      SW_TRY(make_reshardable(source.common_state, catalog, *source.files, is_numbered(catalog)));
  if (has_buckets(catalog)) return undo_buckets(source, catalog);
  return undo_flattened(catalog);
}

}  // namespace shardwright
