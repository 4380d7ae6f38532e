// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/neox_arguments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "base/translated.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

constexpr std::string_view kConfigs = "configs";
constexpr std::uint64_t kMostConfigBytes = std::uint64_t{16} << 20;

enum class Default : std::uint8_t { kNone, kOff, kOne, kLearned, kLayerNorm, kGelu };

// A setting of GPT-NeoX that says what the model is. Without an argument it is Megatron's own name,
// or is translated by its value.
struct NeoxSetting {
  std::string_view name;
  std::string_view argument = {};
  Default usual = Default::kNone;
};

constexpr std::string_view kParallelResidual = "gpt_j_residual";
constexpr std::array kNeoxSettings = {
    NeoxSetting{"num_layers"},
    NeoxSetting{"hidden_size"},
    NeoxSetting{"num_attention_heads"},
    NeoxSetting{"max_position_embeddings"},
    NeoxSetting{"seq_length"},
    NeoxSetting{"make_vocab_size_divisible_by"},
    NeoxSetting{"model_parallel_size", "tensor_model_parallel_size"},
    NeoxSetting{"rotary_pct", "rotary_percent", Default::kOne},
    NeoxSetting{"rotary_emb_base", "rotary_base"},
    NeoxSetting{"no_weight_tying", "untie_embeddings_and_output_weights", Default::kOff},
    NeoxSetting{kParallelResidual, "use_parallel_residual", Default::kOff},
    NeoxSetting{"pos_emb", {}, Default::kLearned},
    NeoxSetting{"norm", {}, Default::kLayerNorm},
    NeoxSetting{"activation", {}, Default::kGelu},
    NeoxSetting{"layernorm_epsilon"},
    NeoxSetting{"rms_norm_epsilon"},
    NeoxSetting{"gpt_j_tied"},
    NeoxSetting{"use_qk_layernorm"},
    NeoxSetting{"sliding_window_width"},
};

// One value of a setting, and the argument that it sets; none where it is Megatron's default.
struct NeoxValue {
  std::string_view name;
  std::string_view value;
  std::string_view argument;
  std::string_view becomes;
};
constexpr std::string_view kTrue = "true";
constexpr std::array kNeoxValues = {
    NeoxValue{"pos_emb", "rotary", "position_embedding_type", "rope"},
    NeoxValue{"pos_emb", "learned", "position_embedding_type", "learned_absolute"},
    NeoxValue{"pos_emb", "none", "position_embedding_type", "none"},
    NeoxValue{"norm", "layernorm", "normalization", "LayerNorm"},
    NeoxValue{"norm", "te_layernorm", "normalization", "LayerNorm"},
    NeoxValue{"norm", "rmsnorm", "normalization", "RMSNorm"},
    NeoxValue{"norm", "te_rmsnorm", "normalization", "RMSNorm"},
    NeoxValue{"activation", "gelu", "", ""},
    NeoxValue{"tokenizer_type", "GPT2BPETokenizer", "tokenizer_type", "GPT2BPETokenizer"},
    NeoxValue{"tokenizer_type", "SentencePieceTokenizer", "tokenizer_type",
              "SentencePieceTokenizer"},
    NeoxValue{"activation", "swiglu", "swiglu", kTrue},
};

// Where they are set, Megatron-Core computes otherwise.
constexpr std::array<std::string_view, 4> kWithoutCounterpart = {
    kParallelResidual, "gpt_j_tied", "sliding_window_width", "use_qk_layernorm"};

ArgValue value_of(Default usual) {
  switch (usual) {
    case Default::kNone:
      return {};
    case Default::kOff:
      return false;
    case Default::kOne:
      return 1.0;
    case Default::kLearned:
      return std::string("learned");
    case Default::kLayerNorm:
      return std::string("layernorm");
    case Default::kGelu:
      return std::string("gelu");
  }
  return {};
}

bool is_off(const ArgValue& value) {
  return value == ArgValue{} || value == ArgValue{false} || value == ArgValue{std::int64_t{0}};
}

// Configurations are YAML in Python's spelling.
ArgValue as_flag(ArgValue value) {
  const auto* const text = std::get_if<std::string>(&value);
  if (text == nullptr || (*text != "True" && *text != "False")) return value;
  return *text == "True";
}

// The settings of all files, which have each name once, with underscores for hyphens.
Result<Arguments> read_configs(const Directory& directory, std::vector<std::string>& notes) {
  Arguments settings;
  if (!directory.exists(kConfigs)) return settings;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(kConfigs))) {
    const bool is_config = entry.name.ends_with(".yml") || entry.name.ends_with(".yaml") ||
                           entry.name.ends_with(".json");
    if (entry.is_directory || !is_config) continue;
    const std::string path = fmt::format("{}/{}", kConfigs, entry.name);
    const std::string text = SW_TRY(read_whole(directory, path, kMostConfigBytes));
    const auto values = read_yaml_values(text, path);
    if (!values) {
      notes.push_back(translated("{}; its settings are taken for unknown", values.error().message));
      return Arguments();
    }
    for (const auto& [name, value] : *values) {
      std::string spelled = name;
      std::ranges::replace(spelled, '-', '_');
      settings.insert_or_assign(std::move(spelled), as_flag(value));
    }
  }
  return settings;
}

void take_configs(const Arguments& settings, Arguments& arguments) {
  if (!settings.contains("num_layers")) return;  // not that of a run
  for (const NeoxSetting& setting : kNeoxSettings) {
    const auto found = settings.find(setting.name);
    const ArgValue value = found == settings.end() ? value_of(setting.usual) : found->second;
    if (value != ArgValue{}) arguments.emplace(setting.name, value);
  }
}

// What norms add to the variance, by the kind of norm.
void take_epsilon(Arguments& arguments) {
  const auto kind = arguments.find("normalization");
  const bool is_root_mean_square =
      kind != arguments.end() && kind->second == ArgValue{std::string("RMSNorm")};
  const std::string_view name = is_root_mean_square ? "rms_norm_epsilon" : "layernorm_epsilon";
  if (const auto found = arguments.find(name); found != arguments.end()) {
    arguments.emplace("norm_epsilon", ArgValue(found->second));
  }
  arguments.erase("rms_norm_epsilon");
}

// Translates a setting by its value, and tells one that has no counterpart.
std::optional<std::string> take_value(std::string_view name, Arguments& arguments) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return std::nullopt;
  const auto* const text = std::get_if<std::string>(&found->second);
  const std::string value = text == nullptr ? std::string() : *text;
  arguments.erase(found);
  for (const NeoxValue& each : kNeoxValues) {
    if (each.name != name || each.value != value) continue;
    if (each.argument.empty()) return std::nullopt;
    const ArgValue becomes =
        each.becomes == kTrue ? ArgValue{true} : ArgValue{std::string(each.becomes)};
    arguments.insert_or_assign(std::string(each.argument), becomes);
    return std::nullopt;
  }
  return fmt::format("{}: {}", name, printable(value));
}

}  // namespace

Status take_neox_arguments(const Directory& directory, Arguments& arguments,
                           std::vector<std::string>& notes) {
  const Arguments settings = SW_TRY(read_configs(directory, notes));
  take_configs(settings, arguments);
  std::vector<std::string> rest;
  for (const std::string_view name : kWithoutCounterpart) {
    const auto found = arguments.find(name);
    if (found == arguments.end()) continue;
    if (!is_off(found->second)) rest.emplace_back(name);
    if (name != kParallelResidual) arguments.erase(found);
  }
  for (const std::string_view name : {"pos_emb", "norm", "activation", "tokenizer_type"}) {
    if (std::optional<std::string> lost = take_value(name, arguments)) rest.push_back(*lost);
  }
  const auto positions = arguments.find("position_embedding_type");
  const bool is_rotary =
      positions == arguments.end() || positions->second == ArgValue{std::string("rope")};
  if (!is_rotary) arguments.erase("rotary_pct");
  for (const NeoxSetting& setting : kNeoxSettings) {
    auto taken = setting.argument.empty() ? Arguments::node_type()
                                          : arguments.extract(std::string(setting.name));
    if (!taken.empty()) arguments.emplace(setting.argument, std::move(taken.mapped()));
  }
  take_epsilon(arguments);
  if (!rest.empty()) {
    notes.push_back(translated("Megatron-Core has no argument for these settings of GPT-NeoX: {}",
                               name_list(rest)));
  }
  return {};
}

}  // namespace shardwright
