// SPDX-License-Identifier: Apache-2.0
#include "format/nemo/nemo_config.h"

#include <array>
#include <optional>
#include <string>

#include "base/fail.h"
#include "base/text.h"
#include "model/arguments.h"
#include "state/provider_arguments.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

// One value of a NeMo key, and the argument that it sets.
struct NemoSetting {
  std::string_view key;
  std::string_view value;
  std::string_view argument;
  std::string_view becomes;  // text, or `true` or `false`
};

constexpr std::array kNemoSettings = {
    NemoSetting{"activation", "fast-swiglu", "swiglu", "true"},
    NemoSetting{"activation", "swiglu", "swiglu", "true"},
    NemoSetting{"activation", "squared-relu", "squared_relu", "true"},
    NemoSetting{"activation", "fast-geglu", "geglu", "true"},
    NemoSetting{"activation", "fast-geglu", "gated_linear_unit", "true"},
    NemoSetting{"activation", "geglu", "geglu", "true"},
    NemoSetting{"activation", "geglu", "gated_linear_unit", "true"},
    NemoSetting{"activation", "fast-reglu", "reglu", "true"},
    NemoSetting{"activation", "fast-reglu", "gated_linear_unit", "true"},
    NemoSetting{"activation", "reglu", "reglu", "true"},
    NemoSetting{"activation", "reglu", "gated_linear_unit", "true"},
    NemoSetting{"normalization", "rmsnorm", "normalization", "RMSNorm"},
    NemoSetting{"normalization", "layernorm", "normalization", "LayerNorm"},
    NemoSetting{"normalization", "layernorm1p", "normalization", "LayerNorm"},
    NemoSetting{"normalization", "layernorm1p", "apply_layernorm_1p", "true"},
};

// Keys whose values are Megatron's under another name.
struct NemoName {
  std::string_view key;
  std::string_view argument;
};
constexpr std::array kNemoNames = {
    NemoName{"layernorm_epsilon", "norm_epsilon"},
    NemoName{"encoder_seq_length", "seq_length"},
    NemoName{"rotary_percentage", "rotary_percent"},
    NemoName{"bias", "add_bias_linear"},
    NemoName{"qkv_bias", "add_qkv_bias"},
};

ArgValue as_argument(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  return std::string(text);
}

// The scaling of Llama 3.1, whose numbers NeMo 1 has in its code, but for the factor of later
// versions.
void scale_positions(Arguments& arguments) {
  if (is_true(arguments, "scale_positional_embedding")) {
    constexpr double kFactor = 8.0;
    const auto factor = arguments.find("scale_factor");
    const bool is_given = factor != arguments.end() && factor->second != ArgValue{};
    arguments.insert_or_assign("rope_scaling_factor",
                               is_given ? ArgValue(factor->second) : ArgValue{kFactor});
    arguments.insert_or_assign("use_rope_scaling", ArgValue{true});
  } else if (arguments.contains("scale_positional_embedding")) {
    arguments.erase("scale_factor");  // said of a scaling that is off
  }
  add_arguments_of_provider(arguments);
}

// Arguments of Megatron-Core that NeMo 1 has no key of its own for (Gemma 2's caps), which it hands
// on as they are.
void lift_customization(Arguments& arguments) {
  constexpr std::string_view kSection = "mcore_customization_config.";
  Arguments lifted;
  for (const auto& [name, value] : arguments) {
    if (name.starts_with(kSection)) lifted.emplace(name.substr(kSection.size()), value);
  }
  for (auto& [name, value] : lifted) arguments.insert_or_assign(name, std::move(value));
}

std::string text_of_value(const ArgValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

}  // namespace

Result<Arguments> arguments_of_nemo(std::string_view yaml) {
  Arguments arguments = SW_TRY(read_yaml_values(yaml, "model_config.yaml"));
  lift_customization(arguments);
  for (const NemoName& name : kNemoNames) {
    const auto found = arguments.find(name.key);
    if (found != arguments.end())
      arguments.insert_or_assign(std::string(name.argument), ArgValue(found->second));
  }
  if (const auto is_shared = find_flag(arguments, "share_embeddings_and_output_weights")) {
    arguments.insert_or_assign("untie_embeddings_and_output_weights", ArgValue(!*is_shared));
  }
  for (const std::string_view key : {"activation", "normalization"}) {
    const auto found = arguments.find(key);
    const std::string value = found == arguments.end() ? "" : text_of_value(found->second);
    for (const NemoSetting& setting : kNemoSettings) {
      if (setting.key != key || setting.value != value) continue;
      arguments.insert_or_assign(std::string(setting.argument), as_argument(setting.becomes));
    }
  }
  scale_positions(arguments);
  if (is_true(arguments, "megatron_legacy")) {
    return fail(
        Code::kUnsupportedFormat,
        "model_config.yaml: megatron_legacy is set, so rows of queries, keys and values lie "
        "in an order of old models; NeMo 1 itself saves it anew without");
  }
  return arguments;
}

void take_vocabulary(const Catalog& catalog, Arguments& arguments) {
  const auto known = arguments.find("padded_vocab_size");
  if (known != arguments.end() && std::holds_alternative<std::int64_t>(known->second)) return;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.desc.name != "embedding.word_embeddings.weight") continue;
    if (tensor.desc.shape.empty()) return;
    arguments.insert_or_assign("padded_vocab_size", ArgValue(tensor.desc.shape[0]));
  }
}

}  // namespace shardwright
