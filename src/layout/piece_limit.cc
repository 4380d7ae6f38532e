// SPDX-License-Identifier: Apache-2.0
#include "layout/piece_limit.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "layout/layer_name.h"
#include "layout/shard_rule.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostLayers = std::int64_t{1} << 16;
// The largest public model, its optimizer included, has some two hundred thousand.
constexpr std::int64_t kMostPieces = std::int64_t{1} << 22;

}  // namespace

Status check_piece_count(std::span<const TensorDesc> tensors) {
  std::int64_t pieces = 0;
  for (const TensorDesc& tensor : tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    const bool stacked = layer && !layer->index && !tensor.shape.empty();
    const std::int64_t copies = stacked ? tensor.shape[0] : 1;
    const std::int64_t layers = layer && layer->index ? *layer->index : copies;
    if (layers > kMostLayers) {
      return fail(Code::kLimit, "tensor {}: found {} layers, expected at most {}", tensor.name,
                  layers, kMostLayers);
    }
    const int lead = stacked ? 1 : 0;
    const ShardRule rule = shard_rule(tensor.name, tensor.shape.size() - lead, false);
    const std::int64_t experts = rule.expert_axis >= 0 ? tensor.shape[rule.expert_axis + lead] : 1;
    pieces += std::min(experts, kMostPieces + 1) * copies;  // both bounded: cannot overflow
    if (pieces > kMostPieces) {
      return fail(Code::kLimit,
                  "tensor {}: found more than {} pieces of layers and experts up to here, expected "
                  "fewer; the checkpoint's metadata is damaged or hostile",
                  tensor.name, kMostPieces);
    }
  }
  return {};
}

}  // namespace shardwright
