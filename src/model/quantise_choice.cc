// SPDX-License-Identifier: Apache-2.0
#include "model/quantise_choice.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/glob.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "layout/model_head.h"
#include "model/expert_parameter.h"
#include "model/quantisation_config.h"

namespace shardwright {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Scales = QuantisationConfig::Scales;

constexpr std::string_view kWeightEnding = ".weight";
constexpr const char* kQuantisationKey = "quantization_config";
constexpr std::int64_t kFp4GroupValues = 32;  // values of fp4 with one exponent

// Modules that releases in blocks of e4m3 leave in 16 bits though they are matrices.
constexpr std::array<std::string_view, 8> kLeftModules = {
    "gate", "router", "shared_expert_gate", "eh_proj", "weights_proj", "wg", "head", "lm_head"};
// Parts of a module's name that stand for what is no linear of a language model's layer.
constexpr std::array<std::string_view, 11> kLeftParts = {"visual",
                                                         "vision",
                                                         "image",
                                                         "audio",
                                                         "speech",
                                                         "projector",
                                                         "embed",
                                                         "norm",
                                                         "conv",
                                                         "compressor",
                                                         "relative_attention_bias"};
// Routers, whatever module of theirs holds the matrix.
constexpr std::array<std::string_view, 2> kLeftParents = {".gate.", ".router."};
// transformers replaces modules of class nn.Linear, and of experts those without biases and stored
// [outputs, inputs]: of these models it would read codes as if they were weights. So it would of
// GraniteMoE, whose experts it renames behind the list of what is left, and of Zamba 2, whose
// shared blocks have weights of their first place only; and it asks for scales of Step 3.7's towers
// and of the head of Megatron's BERT. Experts of Qwen3-VL-MoE are stored [inputs, outputs].
constexpr std::array<std::string_view, 12> kNoFp8 = {
    "falcon",       "gpt2",       "gpt_oss",          "llama4",
    "llama4_text",  "granitemoe", "granitemoehybrid", "granitemoeshared",
    "qwen3_vl_moe", "step3p7",    "megatron-bert",    "zamba2"};

std::string_view module_of(std::string_view tensor) {
  if (tensor.ends_with(kWeightEnding)) tensor.remove_suffix(kWeightEnding.size());
  return tensor;
}

// A number between dots: a tensor of a layer.
bool has_number(std::string_view name) {
  for (std::size_t at = name.find('.'); at != std::string_view::npos; at = name.find('.', at + 1)) {
    const std::size_t end = name.find_first_not_of("0123456789", at + 1);
    if (end != std::string_view::npos && end > at + 1 && name[end] == '.') return true;
  }
  return false;
}

bool is_linear_of_layer(const TensorDesc& desc) {
  const int axes = desc.shape.size();
  const std::string& name = desc.name;
  const bool are_experts = axes == 3 && name.find(".experts.") != std::string::npos;
  if (axes != 2 && !are_experts) return false;
  if (!name.ends_with(kWeightEnding) && !(are_experts && is_expert_parameter(name))) return false;
  const std::string_view module = module_of(name);
  const std::string_view last = module.substr(module.rfind('.') + 1);
  const auto stands_in = [&](std::string_view part) {
    return module.find(part) != std::string_view::npos;
  };
  return has_number(name) && !has_head_name(name) &&
         std::ranges::find(kLeftModules, last) == kLeftModules.end() &&
         std::ranges::none_of(kLeftParents, stands_in) &&
         std::ranges::none_of(kLeftParts, stands_in);
}

// As transformers reads such lists: a name, its end, or what is around it; `*` is anything.
bool names_module(std::string_view entry, std::string_view module) {
  const std::string pattern(entry);
  return matches_glob(pattern, module) || matches_glob(pattern + ".*", module) ||
         matches_glob("*." + pattern, module);
}

Result<OrderedJson> quantisation_of(std::string_view config_json) {
  if (config_json.empty()) return OrderedJson();
  const OrderedJson document = SW_TRY(parse_ordered_json(config_json, "config.json"));
  for (const OrderedJson* place :
       {&document, document.is_object() && document.contains("text_config")
                       ? &document["text_config"]
                       : nullptr}) {
    if (place == nullptr || !place->is_object()) continue;
    const auto found = place->find(kQuantisationKey);
    if (found != place->end() && found->is_object()) return *found;
  }
  return OrderedJson();
}

Result<QuantisationConfig> parsed(const OrderedJson& quantisation) {
  OrderedJson config;
  config[kQuantisationKey] = quantisation;
  return read_quantisation_config(config.dump());
}

bool is_of_blocks(const QuantisationConfig& config) {
  return config.method == "fp8" && config.unsupported.empty() && config.scales == Scales::kBlocks;
}

bool is_of_fp4(const QuantisationConfig& config) { return config.scales == Scales::kFp4Groups; }

std::vector<std::string> left_modules(const OrderedJson& quantisation) {
  std::vector<std::string> left;
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    const auto found = quantisation.find(key);
    if (found == quantisation.end() || !found->is_array()) continue;
    for (const OrderedJson& entry : *found) {
      if (entry.is_string()) left.push_back(entry.get<std::string>());
    }
  }
  return left;
}

// Of names and globs it is the same whether they are read as such or as regular expressions, which
// transformers takes them for.
Status check_left(const std::vector<std::string>& left) {
  for (const std::string& entry : left) {
    if (entry.find_first_of("\\[(+?^$|{") == std::string::npos) continue;
    return fail(Code::kUnsupportedFormat,
                "config.json: quantization_config leaves out {}, a regular expression; name the "
                "modules instead (`*` stands for anything)",
                printable(entry));
  }
  return {};
}

OrderedJson new_fp8_config() {
  return {{"activation_scheme", "dynamic"},
          {"fmt", "e4m3"},
          {"quant_method", "fp8"},
          {"weight_block_size", {128, 128}}};
}

OrderedJson new_fp4_config() {
  return {
      {"modules_to_not_convert",
       {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}},
      {"quant_method", "mxfp4"}};
}

Result<std::string> model_type_of(std::string_view config_json) {
  if (config_json.empty()) return std::string();
  const OrderedJson document = SW_TRY(parse_ordered_json(config_json, "config.json"));
  const bool has_type =
      document.is_object() && document.contains("model_type") && document["model_type"].is_string();
  return has_type ? document["model_type"].get<std::string>() : std::string();
}

}  // namespace

bool QuantiseChoice::takes(const TensorDesc& desc) const {
  if (!is_castable_float(desc.dtype) || desc.shape.size() < 2) return false;
  if (!released.empty()) return released.contains(desc.name);
  if (form.scheme == Quantising::Scheme::kMxfp4) {
    return desc.shape.size() == 3 && is_expert_parameter(desc.name);
  }
  return is_linear_of_layer(desc) && !leaves(module_of(desc.name));
}

bool QuantiseChoice::leaves(std::string_view module) const {
  return std::ranges::any_of(left,
                             [&](const std::string& entry) { return names_module(entry, module); });
}

std::string QuantiseChoice::name_of_values(const std::string& name) const {
  return name + value_ending;
}

std::string QuantiseChoice::name_of_scales(const std::string& name) const {
  return (replaces_weight ? std::string(module_of(name)) : name) + scale_ending;
}

Result<QuantiseChoice> choose_quantisation(Quantising::Scheme wanted, bool wants_exponents,
                                           std::string_view config_json,
                                           const ReleasedQuantisation& release) {
  const bool is_fp4 = wanted == Quantising::Scheme::kMxfp4;
  const auto fits = [&](const OrderedJson& quantisation) -> Result<bool> {
    if (quantisation.is_null()) return false;
    const QuantisationConfig config = SW_TRY(parsed(quantisation));
    return is_fp4 ? is_of_fp4(config) : is_of_blocks(config);
  };
  const std::string model_type = SW_TRY(model_type_of(config_json));
  if (is_fp4 && model_type != "gpt_oss") {
    return fail(Code::kUnsupportedFormat,
                "config.json: found model_type '{}', expected 'gpt_oss': no other model is loaded "
                "with its experts as mxfp4 blocks; --quantise fp8-block is for other models",
                model_type);
  }
  if (model_type == "deepseek_v41" || model_type == "deepseek_v4.1") {
    return fail(Code::kUnsupportedFormat,
                "config.json: found model_type '{}', whose tables are loaded with scales within "
                "their rows, which --quantise does not write; leave it out for what the numbers "
                "mean in bfloat16",
                model_type);
  }
  QuantiseChoice choice;
  OrderedJson quantisation = SW_TRY(quantisation_of(config_json));
  const bool is_own = SW_TRY(fits(quantisation));
  const OrderedJson released =
      release.config.empty() ? OrderedJson()
                             : SW_TRY(parse_ordered_json(release.config, "hf/source_keys.json"));
  const bool is_released = SW_TRY(fits(released));
  if (!is_fp4 && !is_own && !is_released && std::ranges::find(kNoFp8, model_type) != kNoFp8.end()) {
    return fail(Code::kUnsupportedFormat,
                "config.json: found model_type '{}', whose modules are not loaded from blocks of "
                "fp8; leave --quantise out{}",
                model_type, model_type == "gpt_oss" ? ", or use --quantise mxfp4" : "");
  }
  if (is_released) {
    choice.released.insert(release.tensors.begin(), release.tensors.end());
    choice.was_of_exponents = SW_TRY(parsed(released)).has_exponents;
  }
  if (!is_own) {
    const OrderedJson fresh = is_fp4 ? new_fp4_config() : new_fp8_config();
    quantisation = is_released ? released : fresh;
  }
  choice.left = left_modules(quantisation);
  if (!is_released) {
    SW_TRY(check_left(choice.left));
    // A config of its own without a list is one of a family whose loader knows.
    choice.lists_left = !is_fp4 && (!is_own || !choice.left.empty());
  }
  if (is_fp4) {
    choice.form = {
        Quantising::Scheme::kMxfp4, Quantising::Part::kValues, {}, 1, kFp4GroupValues, true};
    choice.value_ending = "_blocks";
    choice.scale_ending = "_scales";
    choice.scale_dtype = DType::kU8;
  } else {
    const bool is_deepseek_v4 = model_type == "deepseek_v4";
    // Its scales have one byte, or nobody takes them for scales.
    if (wants_exponents || (is_deepseek_v4 && !is_own)) quantisation["scale_fmt"] = "ue8m0";
    if (is_deepseek_v4 && quantisation.contains("expert_dtype")) {
      quantisation["expert_dtype"] = "fp8";
    }
    const QuantisationConfig config = SW_TRY(parsed(quantisation));
    choice.form = {Quantising::Scheme::kFp8, Quantising::Part::kValues, {},
                   config.block[0],          config.block[1],           config.has_exponents};
    choice.scale_ending = "_scale_inv";
    if (is_deepseek_v4) {
      choice.replaces_weight = true;
      choice.scale_ending = ".scale";
      choice.expert_dtype = "fp8";
    }
  }
  choice.config = quantisation.dump();
  return choice;
}

Result<ReleasedQuantisation> released_quantisation(const ModelTensors& model,
                                                   std::string_view config_json) {
  ReleasedQuantisation released;
  if (model.quantised.empty()) return released;
  const QuantisationConfig config = SW_TRY(read_quantisation_config(config_json));
  if (!is_of_blocks(config) && !is_of_fp4(config)) return released;
  released.config = SW_TRY(quantisation_of(config_json)).dump();
  for (const QuantisedTensor& joined : model.quantised) {
    released.tensors.push_back(joined.desc.name);
  }
  return released;
}

}  // namespace shardwright
