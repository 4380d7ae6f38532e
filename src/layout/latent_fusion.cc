// SPDX-License-Identifier: Apache-2.0
#include "layout/latent_fusion.h"

#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kFused = ".self_attention.linear_qkv_down_proj.weight";
constexpr std::string_view kFusedNorm = ".self_attention.linear_qkv_down_proj.layer_norm_";
constexpr std::string_view kQuery = ".self_attention.linear_q_down_proj.weight";
constexpr std::string_view kKeyValue = ".self_attention.linear_kv_down_proj.weight";
constexpr std::string_view kNorm = ".input_layernorm.";

std::string in_layer(std::string_view layer, std::string_view rest) {
  return std::string(layer) + std::string(rest);
}

}  // namespace

LatentFusion::LatentFusion(std::span<const TensorDesc> canonical) {
  for (const TensorDesc& tensor : canonical) {
    const std::string_view name = tensor.name;
    if (name.ends_with(kQuery)) layers_.emplace(name.substr(0, name.size() - kQuery.size()));
  }
}

std::optional<LatentFusion::Place> LatentFusion::place_of(std::string_view canonical) const {
  const auto layer_before = [&](std::size_t at) -> std::optional<std::string> {
    if (at == std::string_view::npos) return std::nullopt;
    std::string layer(canonical.substr(0, at));
    if (!layers_.contains(layer)) return std::nullopt;
    return layer;
  };
  for (const std::string_view part : {kQuery, kKeyValue}) {
    if (!canonical.ends_with(part)) continue;
    if (const auto layer = layer_before(canonical.size() - part.size())) {
      return Place{in_layer(*layer, kFused), part == kQuery ? 0 : 1, true};
    }
  }
  const std::size_t norm = canonical.rfind(kNorm);
  if (const auto layer = layer_before(norm)) {
    return Place{in_layer(*layer, kFusedNorm) + std::string(canonical.substr(norm + kNorm.size())),
                 -1, false};
  }
  return std::nullopt;
}

bool is_fused_latent(std::string_view name) { return name.ends_with(kFused); }

std::array<std::string, 2> latent_weights(std::string_view name) {
  const std::string_view layer = name.substr(0, name.size() - kFused.size());
  return {in_layer(layer, kQuery), in_layer(layer, kKeyValue)};
}

Result<LatentRows> latent_rows(std::string_view name, std::int64_t rows, std::int64_t up_columns,
                               std::int64_t tensor_parallel) {
  std::array<std::string, 2> weights = latent_weights(name);
  LatentRows result{std::move(weights[0]), std::move(weights[1]), 0, 0};
  result.queries = up_columns / tensor_parallel;
  result.keys_values = rows - result.queries;
  if (up_columns <= 0 || up_columns % tensor_parallel != 0 || result.keys_values <= 0) {
    return fail(Code::kShapeMismatch,
                "tensor {}: found {} rows beside a linear_q_up_proj of {} columns, expected a part "
                "for queries and one for keys and values on each of {} tensor-parallel ranks",
                name, rows, up_columns, tensor_parallel);
  }
  return result;
}

std::string unfused_latent_norm(std::string_view name) {
  const std::size_t at = name.find(kFusedNorm);
  if (at == std::string_view::npos) return std::string(name);
  return in_layer(name.substr(0, at), kNorm) + std::string(name.substr(at + kFusedNorm.size()));
}

}  // namespace shardwright
