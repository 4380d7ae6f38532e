// SPDX-License-Identifier: Apache-2.0
#include "convert/bridge_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "model/arguments.h"

namespace shardwright {
namespace {

constexpr std::string_view kBridge = "megatron.bridge.";

// A provider class of Megatron-Bridge, seen in what it wrote itself for these families, or in its
// sources for those whose arguments are all fields of it.
struct Provider {
  std::string_view family;
  std::string_view target;
  std::string_view vision_config;  ///< class of the encoder's settings; empty: no encoder
  /// Of a model that has no words: its activation, and none of the fields that say what GPTs are.
  std::string_view activation = {};
};
constexpr std::array kProviders = {
    Provider{"llama", "models.gpt_provider.GPTModelProvider", ""},
    Provider{"qwen2", "models.gpt_provider.GPTModelProvider", ""},
    Provider{"qwen3", "models.gpt_provider.GPTModelProvider", ""},
    Provider{"qwen3_moe", "models.gpt_provider.GPTModelProvider", ""},
    Provider{"gpt_oss", "models.gpt_provider.GPTModelProvider", ""},
    Provider{"deepseek_v3", "models.mla_provider.MLAModelProvider", ""},
    Provider{"glm4_moe_lite", "models.mla_provider.MLAModelProvider", ""},
    Provider{"glm_moe_dsa", "models.mla_provider.MLAModelProvider", ""},
    Provider{"hy_v3", "models.gpt_provider.GPTModelProvider", ""},
    Provider{"qwen3_5_vl", "models.qwen_vl.qwen35_vl_provider.Qwen35VLModelProvider",
             "qwen3_5.configuration_qwen3_5.Qwen3_5VisionConfig"},
    Provider{"qwen3_5_vl_moe", "models.qwen_vl.qwen35_vl_provider.Qwen35VLMoEModelProvider",
             "qwen3_5_moe.configuration_qwen3_5_moe.Qwen3_5MoeVisionConfig"},
    Provider{"flux", "diffusion.models.flux.flux_provider.FluxProvider", "",
             "megatron.core.transformer.utils.openai_gelu"},
    Provider{"wan", "diffusion.models.wan.wan_provider.WanModelProvider", "",
             "torch.nn.functional.gelu"},
};

// Arguments of Megatron-LM that a provider has no field of that name for: what they say is said
// otherwise, or is none of the model's.
const std::set<std::string_view> kOtherwise = {
    "add_position_embedding",
    "apply_layernorm_1p",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "group_query_attention",
    "max_position_embeddings",
    "num_experts",
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "padded_vocab_size",
    "quick_geglu",
    "rope_dynamic_factor",
    "rope_scaling_factor",
    "rotary_seq_len_interpolation_factor",
    "swiglu",
    "tokenizer_type",
    "transformer_impl",
    "untie_embeddings_and_output_weights",
    "use_rope_scaling",
};

// What no field of a provider says.
constexpr std::string_view kNoField = "rope_dynamic_factor";

// Keys of the top of a Qwen config that its provider has too.
constexpr std::array<std::string_view, 4> kTokens = {
    "image_token_id", "video_token_id", "vision_end_token_id", "vision_start_token_id"};
// And of its encoder's settings.
constexpr std::array<std::string_view, 3> kPatches = {"patch_size", "spatial_merge_size",
                                                      "temporal_patch_size"};

// A number as YAML 1.1 reads it: `1e-06` would be a text there.
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) return text + ".0";
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && !text.contains('.')) text.insert(exponent, ".0");
  return text;
}

std::string scalar_text(std::string_view text) {
  const bool is_plain = !text.empty() &&
                        text.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_.") == text.npos &&
                        std::isalpha(static_cast<unsigned char>(text.front())) != 0;
  // Words that YAML 1.1 takes for something else, in any case of letters.
  static const std::set<std::string_view> kWords = {"null", "none", "true", "false", "yes",
                                                    "no",   "on",   "off",  "y",     "n"};
  std::string word(text);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (is_plain && !kWords.contains(word)) return std::string(text);
  return nlohmann::json(text).dump();
}

// What stands behind a key, `: 3` or lines below it.
std::string value_text(const ArgValue& value, std::string_view indent) {
  struct Visitor {
    std::string_view indent;
    std::string operator()(std::monostate) const { return " null"; }
    std::string operator()(bool flag) const { return flag ? " true" : " false"; }
    std::string operator()(std::int64_t number) const { return " " + std::to_string(number); }
    std::string operator()(double number) const { return " " + real_text(number); }
    std::string operator()(const std::string& text) const { return " " + scalar_text(text); }
    std::string operator()(const std::vector<std::int64_t>& list) const {
      std::string text = list.empty() ? " []" : "";
      for (const std::int64_t item : list) text += fmt::format("\n{}- {}", indent, item);
      return text;
    }
    std::string operator()(const std::vector<double>& list) const {
      std::string text = list.empty() ? " []" : "";
      for (const double item : list) text += fmt::format("\n{}- {}", indent, real_text(item));
      return text;
    }
    std::string operator()(const std::vector<std::string>& list) const {
      std::string text = list.empty() ? " []" : "";
      for (const std::string& item : list)
        text += fmt::format("\n{}- {}", indent, scalar_text(item));
      return text;
    }
  };
  return std::visit(Visitor{indent}, value);
}

// A value of config.json that the settings of an encoder can have.
std::optional<ArgValue> plain_value(const nlohmann::ordered_json& value) {
  if (value.is_null()) return ArgValue{};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const auto& element : value) {
    if (!element.is_number_integer()) return std::nullopt;
    numbers.push_back(element.get<std::int64_t>());
  }
  return numbers;
}

std::string callable(std::string_view target, std::string_view indent) {
  return fmt::format("\n{0}_call_: false\n{0}_target_: {1}", indent, target);
}

class Writer {
 public:
  Writer(const Provider& provider, const ModelFacts& facts,
         std::span<const std::pair<std::string, ArgValue>> arguments)
      : provider_(provider), facts_(facts), arguments_(arguments.begin(), arguments.end()) {}

  Result<std::string> write() {
    for (const auto& [name, value] : arguments_) {
      if (!kOtherwise.contains(name) && !name.starts_with("vision_")) set(name, value);
    }
    if (provider_.activation.empty()) {
      say_otherwise();
    } else {
      lines_["activation_func"] = callable(provider_.activation, "    ");
    }
    say_dtype();
    if (!provider_.vision_config.empty()) SW_TRY(add_encoder());
    std::string text =
        "_target_: megatron.bridge.training.config.ConfigContainer\n"
        "checkpoint:\n"
        "  _target_: megatron.bridge.training.config.CheckpointConfig\n"
        "  ckpt_format: torch_dist\n"
        "  save: null\n"
        "  save_optim: false\n"
        "  save_rng: false\n"
        "model:\n";
    text += fmt::format("  _target_: {}{}\n", kBridge, provider_.target);
    for (const auto& [key, value] : lines_) text += fmt::format("  {}:{}\n", key, value);
    return text;
  }

 private:
  void set(std::string_view key, const ArgValue& value) {
    lines_[std::string(key)] = value_text(value, "  ");
  }

  void say_otherwise() {
    const auto value_of = [&](std::string_view name) {
      const auto found = arguments_.find(name);
      return found == arguments_.end() ? ArgValue{} : found->second;
    };
    set("num_moe_experts", value_of("num_experts"));
    set("share_embeddings_and_output_weights",
        !is_true(arguments_, "untie_embeddings_and_output_weights"));
    set("layernorm_zero_centered_gamma", is_true(arguments_, "apply_layernorm_1p"));
    set("num_layers_in_first_pipeline_stage", value_of("decoder_first_pipeline_num_layers"));
    set("num_layers_in_last_pipeline_stage", value_of("decoder_last_pipeline_num_layers"));
    set("rope_scaling", is_true(arguments_, "use_rope_scaling"));
    if (is_true(arguments_, "use_rope_scaling")) {
      set("rope_scaling_factor", value_of("rope_scaling_factor"));
    }
    set("seq_len_interpolation_factor", value_of("rotary_seq_len_interpolation_factor"));
    set("should_pad_vocab", false);
    const bool is_quick = is_true(arguments_, "quick_geglu");
    const bool is_gated = is_quick || is_true(arguments_, "swiglu");
    set("gated_linear_unit", is_gated);
    lines_["activation_func"] =
        callable(is_quick   ? "megatron.core.fusions.fused_bias_geglu.quick_gelu"
                 : is_gated ? "torch.nn.functional.silu"
                            : "torch.nn.functional.gelu",
                 "    ");
  }

  void say_dtype() {
    const std::string_view type = is_true(arguments_, "bf16")   ? "bfloat16"
                                  : is_true(arguments_, "fp16") ? "float16"
                                                                : "float32";
    lines_["params_dtype"] = callable(fmt::format("torch.{}", type), "    ");
  }

  Status add_encoder() {
    const nlohmann::ordered_json config =
        SW_TRY(parse_ordered_json(facts_.config_text, "config.json"));
    const auto copy = [&](const nlohmann::ordered_json& from, std::string_view key) {
      const auto found = from.find(key);
      if (found == from.end()) return;
      if (const auto value = plain_value(*found)) set(key, *value);
    };
    for (const std::string_view key : kTokens) copy(config, key);
    const auto vision = config.find("vision_config");
    if (vision == config.end() || !vision->is_object()) {
      return fail(Code::kConfigMissing, "config.json has no vision_config");
    }
    for (const std::string_view key : kPatches) copy(*vision, key);
    std::string lines =
        fmt::format("\n    _target_: transformers.models.{}", provider_.vision_config);
    for (const auto& [key, setting] : vision->items()) {
      const std::optional<ArgValue> value = plain_value(setting);
      // The Bridge imports and calls what `_target_` names, so no file may say it.
      if (!value || key.starts_with('_')) continue;
      const bool is_type = key == "dtype" || key == "torch_dtype";
      const auto dtype = is_type && setting.is_string()
                             ? dtype_from_torch(setting.get_ref<const std::string&>())
                             : std::nullopt;
      if (is_type && !dtype) continue;
      lines += "\n    " + scalar_text(key) + ":";
      lines += is_type ? callable(fmt::format("torch.{}", torch_name(*dtype)), "      ")
                       : value_text(*value, "    ");
    }
    lines_["vision_config"] = lines;
    return {};
  }

  const Provider& provider_;
  const ModelFacts& facts_;
  std::map<std::string, ArgValue, std::less<>> arguments_;
  std::map<std::string, std::string> lines_;  // what stands behind each key
};

}  // namespace

Result<std::string> new_run_config(const ModelFacts& facts,
                                   std::span<const std::pair<std::string, ArgValue>> arguments,
                                   std::vector<std::string>& notes) {
  const auto said = std::ranges::find_if(arguments, [](const auto& argument) {
    return argument.first == kNoField && argument.second != ArgValue{};
  });
  const auto provider = std::ranges::find(kProviders, facts.mapping->family, &Provider::family);
  if (provider != kProviders.end() && said != arguments.end()) {
    notes.push_back(translated(
        "no run_config.yaml is written: Megatron-Bridge's provider has no field for {}", kNoField));
    return std::string();
  }
  if (provider == kProviders.end()) {
    notes.push_back(translated(
        "no run_config.yaml is written: which provider of Megatron-Bridge builds {} is not known; "
        "Megatron-LM needs none",
        facts.mapping->family));
    return std::string();
  }
  return Writer(*provider, facts, arguments).write();
}

}  // namespace shardwright
