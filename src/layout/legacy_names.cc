// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_names.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "layout/expert_names.h"
#include "layout/latent_fusion.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

struct LegacySpelling {
  std::string_view legacy;
  std::string_view canonical;
};

constexpr std::array kPlainNorms = {
    LegacySpelling{".input_layernorm.", ".self_attention.linear_qkv.layer_norm_"},
    LegacySpelling{".pre_mlp_layernorm.", ".mlp.linear_fc1.layer_norm_"},
};
// Modules have one name for both; reading, the run's arguments tell which layers are which.
constexpr std::array kKindsOfAttention = {
    LegacySpelling{".self_attention.", ".self_attention_sliding."},
    LegacySpelling{".self_attention.", ".self_attention_global."},
};
constexpr LegacySpelling kMtpLayer = {".mtp_model_layer.", ".transformer_layer."};
// Parameters of a mixer where newer versions keep no convolution module.
constexpr std::array kConvolution = {
    LegacySpelling{"mixer.conv1d_weight", "mixer.conv1d.weight"},
    LegacySpelling{"mixer.conv1d_bias", "mixer.conv1d.bias"},
};
// Of an MLP, or of one of the two that ERNIE 4.5 VL has in a layer.
constexpr std::string_view kExperts = ".experts.";
constexpr std::string_view kListed = "local_experts.";

std::string shift_layer(std::string_view name, FirstLayers first, int sign) {
  const std::optional<LayerName> layer = split_layer_name(name);
  if (!layer || !layer->index || !is_main_stack(layer->stack)) return std::string(name);
  const std::int64_t by = sign * (is_encoder_stack(layer->stack) ? first.encoder : first.decoder);
  return join_layer_name(layer->stack, *layer->index + by, layer->rest);
}

// What follows `.experts.`, apart from the expert's number: `local_experts.3.linear_fc1.weight`
// and `linear_fc1.weight3` are both expert 3 of `linear_fc1.weight`.
std::optional<std::pair<std::string, std::int64_t>> split_expert(std::string_view rest) {
  if (rest.starts_with(kListed)) {
    rest.remove_prefix(kListed.size());
    const std::optional<std::int64_t> number = take_number(rest);
    if (!number || !rest.starts_with('.')) return std::nullopt;
    return std::pair(std::string(rest.substr(1)), *number);
  }
  for (const std::string_view parameter : {".weight", ".bias"}) {
    const std::size_t at = rest.find(parameter);
    if (at == std::string_view::npos) continue;
    std::string_view digits = rest.substr(at + parameter.size());
    const std::optional<std::int64_t> number = take_number(digits);
    if (!number || !digits.empty()) continue;
    return std::pair(std::string(rest.substr(0, at + parameter.size())), *number);
  }
  return std::nullopt;
}

}  // namespace

void note_version(std::string_view legacy, VersionedNames& names) {
  const auto has = [&](std::string_view part) {
    return legacy.find(part) != std::string_view::npos;
  };
  if (is_prediction_layer(legacy)) {
    if (has(kMtpLayer.legacy)) names.has_mtp_model_layer = true;
    if (has(kMtpLayer.canonical)) names.has_mtp_model_layer = false;
  }
  for (const LegacySpelling& norm : kPlainNorms) {
    if (has(norm.canonical)) names.has_fused_norms = true;
  }
  if (has(".experts.linear_fc")) names.has_grouped_experts = true;
  if (has(".experts.local_experts.")) names.has_grouped_experts = false;
  if (has(kConvolution[0].legacy)) names.has_plain_convolution = true;
  if (has(kConvolution[0].canonical)) names.has_plain_convolution = false;
}

CanonicalName canonical_from_legacy(std::string_view legacy, FirstLayers first, bool plain_norms) {
  CanonicalName result{unfused_latent_norm(shift_layer(legacy, first, 1)), std::nullopt};
  std::string& name = result.name;
  // A hybrid model's is a stack of blocks and keeps its name.
  if (name.find(".mtp_model_layer.layers.") == std::string::npos) {
    replace_first(name, kMtpLayer.legacy, kMtpLayer.canonical);
  }
  for (const LegacySpelling& spelling : kConvolution)
    replace_first(name, spelling.legacy, spelling.canonical);
  if (plain_norms) {
    for (const LegacySpelling& spelling : kPlainNorms)
      replace_first(name, spelling.legacy, spelling.canonical);
  }
  const std::size_t at = name.find(kExperts);
  if (at == std::string::npos) return result;
  const std::size_t rest = at + kExperts.size();
  if (const auto expert = split_expert(std::string_view(name).substr(rest))) {
    result.expert = expert->second;
    name = name.substr(0, at) + std::string(kExpertLinears) + expert->first;
  }
  return result;
}

std::string legacy_from_canonical(std::string_view canonical, FirstLayers first,
                                  std::optional<std::int64_t> expert,
                                  const LegacyModules& modules) {
  std::string name = shift_layer(canonical, first, -1);
  if (modules.mtp_model_layer) replace_first(name, kMtpLayer.canonical, kMtpLayer.legacy);
  for (const LegacySpelling& spelling : kKindsOfAttention)
    replace_first(name, spelling.canonical, spelling.legacy);
  if (modules.plain_norms && !modules.scaled.have(canonical)) {
    for (const LegacySpelling& spelling : kPlainNorms)
      replace_first(name, spelling.canonical, spelling.legacy);
  }
  if (modules.plain_convolution) {
    for (const LegacySpelling& spelling : kConvolution)
      replace_first(name, spelling.canonical, spelling.legacy);
  }
  const std::size_t at = name.find(kExpertLinears);
  if (at == std::string::npos || !expert) return name;
  const std::string rest = name.substr(at + kExpertLinears.size());
  name.resize(at);
  name += kExperts;
  name += modules.grouped_experts ? fmt::format("{}{}", rest, *expert)
                                  : fmt::format("{}{}.{}", kListed, *expert, rest);
  return name;
}

}  // namespace shardwright
