// SPDX-License-Identifier: Apache-2.0
#include "layout/module_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

// Modules in the order of their constructors. No module has two of them that another has the other
// way round: the parts of vision-language models, which have no common order, are not among them.
constexpr std::array<std::string_view, 56> kModules = {
    // A model and its blocks.
    "embedding", "word_embeddings", "position_embeddings", "tokentype_embeddings",
    "encoder_relative_pos_emb", "decoder_relative_pos_emb", "encoder", "decoder", "layers",
    "final_layernorm", "final_norm", "mtp", "lm_head", "output_layer", "binary_head", "pooler",
    // A head of BERT's.
    "dense", "layer_norm",
    // A layer.
    "input_layernorm", "self_attention", "pre_cross_attn_layernorm", "cross_attention",
    "pre_mlp_layernorm", "mlp", "mixer",
    // An attention.
    "core_attention", "linear_proj", "linear_q", "linear_kv", "linear_q_proj", "linear_q_down_proj",
    "linear_qkv_down_proj", "linear_q_up_proj", "linear_kv_down_proj", "linear_kv_up_proj",
    "linear_qkv", "q_layernorm", "k_layernorm", "kv_layernorm",
    // What chooses the keys of a sparse attention, in its core.
    "indexer", "linear_wq_b", "linear_wk", "k_norm", "linear_weights_proj",
    // A mixer or a delta net.
    "in_proj", "conv1d", "norm", "out_norm", "out_proj",
    // An MLP, with experts or without.
    "router", "fc1_latent_proj", "fc2_latent_proj", "experts", "shared_experts", "linear_fc1",
    "linear_fc2"};

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

// What each name counts for, and whether any place is a guess.
class Sorter {
 public:
  std::vector<Step> steps_of(std::string_view name) {
    std::vector<Step> steps;
    const bool has_prediction = is_prediction_layer(name);
    std::size_t in_prediction = 0;  // parts since `mtp`
    for (std::size_t begin = 0;;) {
      const std::string_view parent = name.substr(0, begin);
      const std::size_t dot = name.find('.', begin);
      const std::string_view word = name.substr(begin, dot - begin);
      if (dot == std::string_view::npos) {
        steps.push_back(step_of_parameter(word));
        note(parent, 0, word, steps.back().rank < kParameters.size());
        return steps;
      }
      if (has_prediction && (word == "mtp" || in_prediction > 0)) ++in_prediction;
      // mtp, layers, the number, and then a module of the layer.
      steps.push_back(step_of_module(parent, word, in_prediction == 4));
      begin = dot + 1;
    }
  }

  // A name whose place among its neighbours no rule tells; empty where there is none.
  [[nodiscard]] std::string first_guess() const {
    for (const auto& [key, children] : children_) {
      if (children.known.size() + children.unknown.size() < 2 || children.unknown.empty()) continue;
      return std::string(key.first) + std::string(children.unknown.front());
    }
    return {};
  }

 private:
  // Of one module: its parameters or its modules.
  struct Children {
    std::set<std::string_view> known;
    std::vector<std::string_view> unknown;  // in the order in which they come
  };

  Step step_of_module(std::string_view parent, std::string_view word, bool is_prediction) {
    std::string_view digits = word;
    if (const auto number = take_number(digits); number && digits.empty()) return {1, 0, *number};
    const std::size_t rank = is_prediction ? rank_in(kPrediction, word) : rank_in(kModules, word);
    const bool is_known = rank < (is_prediction ? kPrediction.size() : kModules.size());
    const std::size_t place = note(parent, 1, word, is_known);
    return {1, is_known ? rank : kModules.size() + place, -1};
  }

  // How many unknown neighbours came before it: a module's tensors stay together.
  std::size_t note(std::string_view parent, int kind, std::string_view word, bool is_known) {
    Children& children = children_[{parent, kind}];
    if (is_known) {
      children.known.insert(word);
      return 0;
    }
    const auto found = std::ranges::find(children.unknown, word);
    const auto place = static_cast<std::size_t>(found - children.unknown.begin());
    if (found == children.unknown.end()) children.unknown.push_back(word);
    return place;
  }

  std::map<std::pair<std::string_view, int>, Children> children_;
};

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
  Sorter sorter;
  std::vector<std::vector<Step>> steps;
  steps.reserve(names.size());
  for (const std::string& name : names) steps.push_back(sorter.steps_of(name));
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
  return order;
}

Status check_module_order(std::span<const std::string> names) {
  Sorter sorter;
  for (const std::string& name : names) sorter.steps_of(name);
  const std::string guess = sorter.first_guess();
  if (guess.empty()) return {};
  return fail(Code::kOptimizerUnsupported,
              "{}: found a module or parameter whose place in torch's list of parameters is not "
              "known, expected those of Megatron's language models: an optimizer numbers its "
              "states by it; convert without (--optimizer drop)",
              guess);
}

}  // namespace shardwright
