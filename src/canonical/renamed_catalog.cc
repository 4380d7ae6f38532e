// SPDX-License-Identifier: Apache-2.0
#include "canonical/renamed_catalog.h"

#include <algorithm>

#include "base/fail.h"
#include "tensor/chunk_part.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

// Dims without their first axis.
Dims without_first(const Dims& dims) {
  Dims rest;
  for (int axis = 1; axis < dims.size(); ++axis) rest.push_back(dims[axis]);
  return rest;
}

// Rows [begin, end) of a chunk.
Chunk rows_of(const Chunk& chunk, std::int64_t begin, std::int64_t end, int element_bytes) {
  Box box = chunk.box;
  box.origin[0] = begin;
  box.shape[0] = end - begin;
  return part_of(chunk, box, element_bytes);
}

// One half of the rows of a head: every second row of it, of those that a chunk has.
void append_half(const Chunk& chunk, std::int64_t head, std::int64_t head_dim, std::int64_t half,
                 int element_bytes, ChunkList& target) {
  const std::int64_t first = head * head_dim + half;
  const std::int64_t begin = chunk.box.origin[0];
  const std::int64_t end = begin + chunk.box.shape[0];
  const std::int64_t from = std::max<std::int64_t>(0, (begin - first + 1) / 2);
  const std::int64_t rows = head_dim / 2;
  const std::int64_t to = std::min<std::int64_t>(rows, end > first ? (end - first + 1) / 2 : 0);
  if (from >= to) return;
  Chunk part = rows_of(chunk, first + 2 * from, first + 2 * (to - 1) + 1, element_bytes);
  if (part.strides.empty()) part.strides = row_major_strides(part.box.shape);
  part.box.origin[0] = head * head_dim + half * rows + from;
  part.box.shape[0] = to - from;
  part.strides[0] *= 2;
  target.push_back(part);
}

}  // namespace

RenamedCatalog::RenamedCatalog(const Catalog& source, const ModelSizes& sizes) : sizes_(sizes) {
  result_.files = source.files;
  result_.objects = source.objects;
}

Result<StoredTensor*> RenamedCatalog::begin(const StoredTensor& source, TensorDesc desc) {
  const auto [first, is_new] = stored_by_name_.emplace(desc.name, source.desc.name);
  if (!is_new) {
    return fail(Code::kDuplicateName, "tensors {} and {}: both are the model's {}", first->second,
                source.desc.name, desc.name);
  }
  const int axes = desc.shape.size();
  result_.tensors.push_back({std::move(desc), ChunkList(axes), Encoding::kRaw});
  return &result_.tensors.back();
}

Status RenamedCatalog::add(const StoredTensor& tensor, const std::string& name) {
  StoredTensor& target = *SW_TRY(begin(tensor, {name, tensor.desc.dtype, tensor.desc.shape}));
  target.chunks = tensor.chunks;
  target.encoding = tensor.encoding;
  target.copies = tensor.copies;
  return {};
}

Status RenamedCatalog::add(const StoredTensor& tensor, const StoredNameRule& rule,
                           std::vector<Binding> numbers) {
  if (!rule.stack.empty()) return add_stack(tensor, rule, std::move(numbers));
  const std::string name = SW_TRY(rule.hf.render(Scope{sizes_, numbers}));
  return rule.has_rotary_pairs ? add_rotary(tensor, name) : add(tensor, name);
}

Status RenamedCatalog::add_stack(const StoredTensor& tensor, const StoredNameRule& rule,
                                 std::vector<Binding> numbers) {
  if (tensor.desc.shape.empty()) {
    return fail(Code::kShapeMismatch, "tensor {}: found no axes, expected one for each {}",
                tensor.desc.name, rule.stack);
  }
  constexpr std::int64_t kMostTensors = std::int64_t{1} << 22;
  const auto held = static_cast<std::int64_t>(result_.tensors.size());
  if (tensor.desc.shape[0] > kMostTensors - held) {
    return fail(Code::kLimit, "tensor {}: {} would be more than {} tensors", tensor.desc.name,
                to_string(tensor.desc.shape), kMostTensors);
  }
  const Dims inner = without_first(tensor.desc.shape);
  const std::size_t first = result_.tensors.size();
  numbers.push_back({rule.stack, 0});
  for (std::int64_t index = 0; index < tensor.desc.shape[0]; ++index) {
    numbers.back().value = index;
    const std::string name = SW_TRY(rule.hf.render(Scope{sizes_, numbers}));
    SW_TRY(begin(tensor, {name, tensor.desc.dtype, inner}));
  }
  if (tensor.encoding != Encoding::kRaw) return {};
  const int element = bytes_of(tensor.desc.dtype);
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const Chunk chunk = tensor.chunks[c];
    if (chunk.box.is_empty()) continue;
    for (std::int64_t row = 0; row < chunk.box.shape[0]; ++row) {
      const std::int64_t index = chunk.box.origin[0] + row;
      Chunk part = rows_of(chunk, index, index + 1, element);
      part.box = {without_first(part.box.origin), without_first(part.box.shape)};
      if (!part.strides.empty()) part.strides = without_first(part.strides);
      result_.tensors[first + static_cast<std::size_t>(index)].chunks.push_back(part);
    }
  }
  return {};
}

Status RenamedCatalog::add_rotary(const StoredTensor& tensor, const std::string& name) {
  const std::int64_t head_dim = SW_TRY((Scope{sizes_, {}}.value_of("head_dim")));
  const Dims& shape = tensor.desc.shape;
  if (shape.empty() || head_dim <= 0 || head_dim % 2 != 0 || shape[0] % head_dim != 0) {
    return fail(Code::kShapeMismatch, "tensor {}: found {}, expected rows of whole heads of {}",
                tensor.desc.name, to_string(shape), head_dim);
  }
  StoredTensor& target = *SW_TRY(begin(tensor, {name, tensor.desc.dtype, shape}));
  if (tensor.encoding != Encoding::kRaw) return {};
  const int element = bytes_of(tensor.desc.dtype);
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const Chunk chunk = tensor.chunks[c];
    if (chunk.box.is_empty()) continue;
    const std::int64_t last = chunk.box.origin[0] + chunk.box.shape[0] - 1;
    for (std::int64_t head = chunk.box.origin[0] / head_dim; head <= last / head_dim; ++head) {
      append_half(chunk, head, head_dim, 0, element, target.chunks);
      append_half(chunk, head, head_dim, 1, element, target.chunks);
    }
  }
  return {};
}

}  // namespace shardwright
