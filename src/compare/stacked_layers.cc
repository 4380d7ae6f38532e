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

// What layers have alike: name without number, dtype and shape.
using LayerKind = std::tuple<std::string, DType, std::vector<std::int64_t>>;

Dims with_axis(std::int64_t first, const Dims& rest) {
  Dims dims{first};
  for (const std::int64_t value : rest) dims.push_back(value);
  return dims;
}

// Layers are counted as they come: names may say any number.
StoredTensor stacked(const Catalog& catalog, const std::string& name,
                     const std::vector<std::size_t>& layers) {
  const TensorDesc& one = catalog.tensors[layers.front()].desc;
  std::size_t chunks = 0;
  for (const std::size_t each : layers) chunks += catalog.tensors[each].chunks.size();
  StoredTensor tensor{{name, one.dtype, with_axis(std::ssize(layers), one.shape)},
                      ChunkList(one.shape.size() + 1)};
  tensor.chunks.reserve(chunks);
  for (std::int64_t layer = 0; layer < std::ssize(layers); ++layer) {
    const ChunkList& own = catalog.tensors[layers[static_cast<std::size_t>(layer)]].chunks;
    for (std::size_t i = 0; i < own.size(); ++i) {
      Chunk chunk = own[i];
      chunk.box = {with_axis(layer, chunk.box.origin), with_axis(1, chunk.box.shape)};
      // Nobody steps along an axis of one element.
      if (!chunk.strides.empty()) chunk.strides = with_axis(0, chunk.strides);
      tensor.chunks.push_back(chunk);
    }
  }
  return tensor;
}

}  // namespace

std::optional<Catalog> stack_layers(const Catalog& catalog) {
  std::map<LayerKind, std::vector<std::size_t>> kinds;  // their tensors
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
    kinds[{name, tensor.desc.dtype, {shape.begin(), shape.end()}}].push_back(i);
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
