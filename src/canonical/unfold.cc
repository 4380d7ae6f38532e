// SPDX-License-Identifier: Apache-2.0
#include "canonical/unfold.h"

#include <algorithm>

#include "base/fail.h"
#include "layout/state_name.h"
#include "model/convolutions.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// The rows of a linear as those of a convolution: the axes behind them are whole.
Status unfold(const Dims& shape, StoredTensor& tensor) {
  const std::int64_t columns = tensor.desc.shape[1];
  const Dims row_major = row_major_strides(shape);
  ChunkList chunks(shape.size());
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    Chunk chunk = tensor.chunks[i];
    const bool is_whole = chunk.box.shape[1] == columns;
    const bool is_dense = chunk.strides.empty() || chunk.strides[1] == 1;
    if (!is_whole || !is_dense) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found {} of a {} weight in one piece, expected whole rows that can "
                  "be those of {}",
                  tensor.desc.name, to_string(chunk.box), to_string(tensor.desc.shape),
                  to_string(shape));
    }
    Box box = Box::whole(shape);
    box.origin[0] = chunk.box.origin[0];
    box.shape[0] = chunk.box.shape[0];
    if (!chunk.strides.empty()) {
      Dims strides = row_major;
      strides[0] = chunk.strides[0];
      chunk.strides = strides;
    }
    chunk.box = box;
    chunks.push_back(chunk);
  }
  tensor.desc.shape = shape;
  tensor.chunks = std::move(chunks);
  return {};
}

bool is_flattened(const Dims& stored, const Dims& shape) {
  return stored.size() == 2 && stored[0] == shape[0] &&
         Box::whole(stored).volume() == Box::whole(shape).volume();
}

}  // namespace

Status unfold_convolutions(const ModelFacts& facts, Catalog& catalog) {
  const std::vector<TensorDesc> descs = descs_of(canonical_tensors(catalog));
  const std::vector<TensorDesc> flat =
      SW_TRY(flat_convolutions(*facts.mapping, facts.sizes, descs));
  if (flat.empty()) return {};
  for (StoredTensor& tensor : catalog.tensors) {
    // A state is in the shape that its weight is stored in.
    const std::optional<StateName> state = split_state_name(tensor.desc.name);
    const std::string_view name = state ? state->tensor : tensor.desc.name;
    const auto weight = std::ranges::find(flat, name, &TensorDesc::name);
    if (weight != flat.end() && is_flattened(tensor.desc.shape, weight->shape)) {
      SW_TRY(unfold(weight->shape, tensor));
    }
  }
  return {};
}

Result<ModelFacts> find_megatron_facts(const FamilyChoice& choice, const Checkpoint& source,
                                       std::span<const Mapping> mappings, Catalog& catalog,
                                       Notes& notes) {
  const std::vector<TensorDesc> stored = SW_TRY(canonical_descs(catalog));
  ModelFacts facts = SW_TRY(find_model_facts(choice, source, mappings, stored, notes));
  SW_TRY(unfold_convolutions(facts, catalog));
  return facts;
}

}  // namespace shardwright
