// SPDX-License-Identifier: Apache-2.0
#include "compare/stacked_layers.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "layout/layer_name.h"

namespace shardwright {
namespace {

// A tensor that has the number of its layer in its name.
struct NumberedLayer {
  std::int64_t layer = 0;
  std::size_t tensor = 0;
};

// What layers have alike: name without number, dtype and shape.
using LayerKind = std::tuple<std::string, DType, std::vector<std::int64_t>>;

Dims with_axis(std::int64_t first, const Dims& rest) {
  Dims dims{first};
  for (const std::int64_t value : rest) dims.push_back(value);
  return dims;
}

StoredTensor stacked(const Catalog& catalog, const std::string& name,
                     const std::vector<NumberedLayer>& layers) {
  const TensorDesc& one = catalog.tensors[layers.front().tensor].desc;
  std::int64_t count = 0;
  std::size_t chunks = 0;
  for (const NumberedLayer& each : layers) {
    count = std::max(count, each.layer + 1);
    chunks += catalog.tensors[each.tensor].chunks.size();
  }
  StoredTensor tensor{{name, one.dtype, with_axis(count, one.shape)},
                      ChunkList(one.shape.size() + 1)};
  tensor.chunks.reserve(chunks);
  for (const NumberedLayer& each : layers) {
    const ChunkList& own = catalog.tensors[each.tensor].chunks;
    for (std::size_t i = 0; i < own.size(); ++i) {
      Chunk chunk = own[i];
      chunk.box = {with_axis(each.layer, chunk.box.origin), with_axis(1, chunk.box.shape)};
      // Nobody steps along an axis of one element.
      if (!chunk.strides.empty()) chunk.strides = with_axis(0, chunk.strides);
      tensor.chunks.push_back(chunk);
    }
  }
  return tensor;
}

}  // namespace

std::optional<Catalog> stack_layers(const Catalog& catalog) {
  std::map<LayerKind, std::vector<NumberedLayer>> kinds;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const StoredTensor& tensor = catalog.tensors[i];
    const auto layer = split_layer_name(tensor.desc.name);
    const Dims& shape = tensor.desc.shape;
    if (!layer || !layer->index || tensor.encoding != Encoding::kRaw || shape.size() == kMaxAxes) {
      others.push_back(i);
      continue;
    }
    const std::string name = std::string(layer->stack) + "." + std::string(layer->rest);
    kinds[{name, tensor.desc.dtype, {shape.begin(), shape.end()}}].push_back({*layer->index, i});
  }
  const bool has_stack =
      std::ranges::any_of(kinds, [](const auto& kind) { return kind.second.size() > 1; });
  if (!has_stack) return std::nullopt;
  Catalog stacks{catalog.files, {}, {}};
  for (const std::size_t i : others) stacks.tensors.push_back(catalog.tensors[i]);
  for (const auto& [kind, layers] : kinds) {
    stacks.tensors.push_back(stacked(catalog, std::get<std::string>(kind), layers));
  }
  return stacks;
}

}  // namespace shardwright
