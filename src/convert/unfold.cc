// SPDX-License-Identifier: Apache-2.0
#include "convert/unfold.h"

#include <algorithm>

#include "base/fail.h"
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

}  // namespace

Status unfold_convolutions(const ModelFacts& facts, Catalog& catalog) {
  std::vector<TensorDesc> descs;
  for (const CanonicalTensor& tensor : canonical_tensors(catalog)) descs.push_back(tensor.desc);
  for (const TensorDesc& desc : SW_TRY(flat_convolutions(*facts.mapping, facts.sizes, descs))) {
    const auto tensor = std::ranges::find_if(
        catalog.tensors, [&](const StoredTensor& t) { return t.desc.name == desc.name; });
    if (tensor != catalog.tensors.end()) SW_TRY(unfold(desc.shape, *tensor));
  }
  return {};
}

}  // namespace shardwright
