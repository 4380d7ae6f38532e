// SPDX-License-Identifier: Apache-2.0
#include "layout/module_order.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"

namespace shardwright {
namespace {

// Modules in the order of their constructors. No module has two of them that another has the other
// way round.
constexpr std::array<std::string_view, 41> kModules = {
    // A model and its blocks.
    "vision_model", "language_model", "embedding", "word_embeddings", "position_embeddings",
    "tokentype_embeddings", "decoder", "layers", "final_layernorm", "final_norm", "mtp",
    "output_layer",
    // A layer.
    "input_layernorm", "self_attention", "pre_cross_attn_layernorm", "cross_attention",
    "pre_mlp_layernorm", "mlp", "mixer",
    // An attention.
    "core_attention", "linear_proj", "linear_q_proj", "linear_q_down_proj", "linear_qkv_down_proj",
    "linear_q_up_proj", "linear_kv_down_proj", "linear_kv_up_proj", "linear_qkv", "q_layernorm",
    "k_layernorm", "kv_layernorm",
    // A mixer or a delta net.
    "in_proj", "conv1d", "norm", "out_norm", "out_proj",
    // An MLP, with experts or without.
    "router", "experts", "shared_experts", "linear_fc1", "linear_fc2"};

// Those of an MTP layer, whose final norm stands behind its inner layer.
constexpr std::array<std::string_view, 6> kPrediction = {
    "enorm", "hnorm", "eh_proj", "transformer_layer", "mtp_model_layer", "final_layernorm"};

// Parameters of one module. Before a number: `weight3` of a module of several experts.
constexpr std::array<std::string_view, 10> kParameters = {
    "layer_norm_weight", "layer_norm_bias", "weight",  "bias",  "gate_weight",
    "conv1d_weight",     "conv1d_bias",     "dt_bias", "A_log", "D"};

// What one part of a name counts for.
struct Step {
  std::size_t kind = 0;  // the module's own parameters, then modules
  std::size_t rank = 0;
  std::int64_t number = -1;

  friend auto operator<=>(const Step&, const Step&) = default;
};

template <std::size_t kSize>
std::size_t rank_in(const std::array<std::string_view, kSize>& list, std::string_view word) {
  return static_cast<std::size_t>(std::ranges::find(list, word) - list.begin());
}

Step step_of_parameter(std::string_view word) {
  Step step{0, rank_in(kParameters, word), -1};
  if (step.rank < kParameters.size()) return step;
  const std::size_t digits = word.find_first_of("0123456789");
  if (digits == std::string_view::npos) return step;
  std::string_view number = word.substr(digits);
  const auto value = take_number(number);
  if (!value || !number.empty()) return step;
  return {0, rank_in(kParameters, word.substr(0, digits)), *value};
}

Step step_of_module(std::string_view word, bool is_prediction) {
  std::string_view digits = word;
  if (const auto number = take_number(digits); number && digits.empty()) return {1, 0, *number};
  return {1, is_prediction ? rank_in(kPrediction, word) : rank_in(kModules, word), -1};
}

std::vector<Step> steps_of(std::string_view name) {
  std::vector<Step> steps;
  const bool has_prediction = name.find("mtp.layers.") != std::string_view::npos;
  std::size_t in_prediction = 0;  // parts since `mtp`
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view word = name.substr(0, dot);
    if (dot == std::string_view::npos) {
      steps.push_back(step_of_parameter(word));
      return steps;
    }
    if (has_prediction && (word == "mtp" || in_prediction > 0)) ++in_prediction;
    // mtp, layers, the number, and then a module of the layer.
    steps.push_back(step_of_module(word, in_prediction == 4));
    name.remove_prefix(dot + 1);
  }
}

bool is_integer(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kU16:
    case DType::kI16:
    case DType::kU32:
    case DType::kI32:
    case DType::kU64:
    case DType::kI64:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_parameter(std::string_view name, DType dtype) {
  constexpr std::array<std::string_view, 6> kBuffers = {".expert_bias", ".qb_beta",
                                                        ".inv_freq",    ".running_mean",
                                                        ".running_var", ".local_tokens_per_expert"};
  return !is_integer(dtype) && std::ranges::none_of(kBuffers, [&](std::string_view buffer) {
    return name.ends_with(buffer);
  });
}

std::vector<std::size_t> in_module_order(std::span<const std::string> names) {
  std::vector<std::vector<Step>> steps;
  steps.reserve(names.size());
  for (const std::string& name : names) steps.push_back(steps_of(name));
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
  return order;
}

}  // namespace shardwright
