// SPDX-License-Identifier: Apache-2.0
#include "model/quantisation_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

using Scales = QuantisationConfig::Scales;

// Empty where there is none, or null.
Result<std::string> text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  return fail(Code::kJsonCorrupt, "config.json: quantization_config: found {} {}, expected text",
              key, found->dump());
}

// `128x128`, as compressed-tensors wrote a block once.
nlohmann::json block_of_text(std::string_view text) {
  const auto rows = take_number(text);
  if (!rows || !text.starts_with('x')) return {};
  text.remove_prefix(1);
  const auto columns = take_number(text);
  if (!columns || !text.empty()) return {};
  return nlohmann::json::array({*rows, *columns});
}

Status read_block(const nlohmann::json& object, const char* key, QuantisationConfig& config) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  const nlohmann::json block =
      found->is_string() ? block_of_text(found->get_ref<const std::string&>()) : *found;
  const bool is_pair = block.is_array() && block.size() == 2 && block.at(0).is_number_integer() &&
                       block.at(1).is_number_integer();
  const auto extent = [&](std::size_t i) { return is_pair ? block.at(i).get<std::int64_t>() : 0; };
  if (extent(0) < 1 || extent(1) < 1) {
    return fail(Code::kJsonCorrupt,
                "config.json: quantization_config: found {} {}, expected two positive numbers", key,
                found->dump());
  }
  config.scales = Scales::kBlocks;
  config.block = {extent(0), extent(1)};
  return {};
}

// A whole number that a key must have where it is there; `otherwise` where it is not, or null.
Result<std::int64_t> number_of(const nlohmann::json& object, const char* key,
                               std::int64_t otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  return fail(Code::kJsonCorrupt,
              "config.json: quantization_config: found {} {}, expected a whole number", key,
              found->dump());
}

Result<bool> flag_of(const nlohmann::json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  if (found->is_boolean()) return found->get<bool>();
  return fail(Code::kJsonCorrupt,
              "config.json: quantization_config: found {} {}, expected true or false", key,
              found->dump());
}

bool is_filled(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null() && !found->empty();
}

// -1 and nothing mean whole rows.
Result<std::int64_t> group_size(const nlohmann::json& object) {
  const std::int64_t group = SW_TRY(number_of(object, "group_size", -1));
  if (group > 0 || group == -1) return group == -1 ? 0 : group;
  return fail(Code::kJsonCorrupt,
              "config.json: quantization_config: found group_size {}, expected a positive number "
              "or -1",
              group);
}

// One group of compressed-tensors.
class WeightsReader {
 public:
  WeightsReader(const nlohmann::json& weights, std::string_view format, QuantisationConfig& config)
      : weights_(weights), format_(format), config_(config) {}

  Status run() {
    bits_ = SW_TRY(number_of(weights_, "num_bits", 8));
    type_ = SW_TRY(text_of(weights_, "type"));
    strategy_ = SW_TRY(text_of(weights_, "strategy"));
    group_ = SW_TRY(group_size(weights_));
    if (strategy_.empty()) {  // as compressed-tensors fills it in
      strategy_ = group_ > 0 ? "group" : "tensor";
      if (group_ == 0 && weights_.contains("group_size") && !weights_.at("group_size").is_null()) {
        strategy_ = "channel";
      }
    }
    if (type_ == "float" && bits_ == 8) return read_float8();
    if (type_ == "float" && bits_ == 4) return read_fp4();
    if (type_ == "int") return read_integers();
    return refuse(translated("with weights of {} bits and type '{}'", bits_, type_));
  }

 private:
  Status refuse(std::string why) {
    if (config_.unsupported.empty()) config_.unsupported = std::move(why);
    return {};
  }

  Status read_float8() {
    const Scales before = config_.scales;
    SW_TRY(read_block(weights_, "block_structure", config_));
    Scales found = Scales::kBlocks;
    if (strategy_ == "tensor") found = Scales::kTensor;
    if (strategy_ == "channel") found = Scales::kRows;
    if (strategy_ != "tensor" && strategy_ != "channel" &&
        (strategy_ != "block" || config_.scales != Scales::kBlocks)) {
      return refuse(translated("with strategy '{}'", strategy_));
    }
    if (config_.has_float8 && before != found) {
      return refuse("with two strategies of eight-bit floats");
    }
    config_.scales = found;
    config_.has_float8 = true;
    return {};
  }

  Status read_fp4() {
    PackedWeights packed{PackedWeights::Kind::kNvfp4, 4, group_};
    if (strategy_ == "group" && group_ == 32) {
      packed.kind = PackedWeights::Kind::kMxfp4;
    } else if (strategy_ != "tensor_group" || group_ != 16) {
      return refuse(
          translated("with fp4 weights of strategy '{}' and group_size {}", strategy_, group_));
    }
    return add(packed);
  }

  Status read_integers() {
    if (bits_ != 2 && bits_ != 4 && bits_ != 8) {
      return refuse(translated("with weights of {} bits and type 'int'", bits_));
    }
    if (!format_.empty() && format_ != "pack-quantized" && format_ != "mixed-precision") {
      return refuse(translated("with integers of format '{}'", format_));
    }
    PackedWeights packed{PackedWeights::Kind::kIntegers, static_cast<int>(bits_), group_};
    packed.is_symmetric = SW_TRY(flag_of(weights_, "symmetric", true));
    const auto order = weights_.find("actorder");
    if (order != weights_.end()) {
      packed.is_ordered = *order == "group" || *order == "dynamic" || *order == true;
    }
    if (strategy_ == "channel") {
      packed.group = 0;
    } else if (strategy_ == "tensor" && packed.is_symmetric) {
      packed.group = -1;
    } else if (strategy_ != "group" || group_ < 1) {
      return refuse(translated(
          "with {} integers of strategy '{}'",
          packed.is_symmetric ? translated("symmetric") : translated("asymmetric"), strategy_));
    }
    return add(packed);
  }

  Status add(const PackedWeights& packed) {
    const auto& all = config_.packed;
    if (std::ranges::find(all, packed) == all.end()) config_.packed.push_back(packed);
    return {};
  }

  const nlohmann::json& weights_;
  std::string_view format_;
  QuantisationConfig& config_;
  std::int64_t bits_ = 8;
  std::string type_;
  std::string strategy_;
  std::int64_t group_ = 0;
};

// compressed-tensors describes groups of modules.
Status read_groups(const nlohmann::json& object, QuantisationConfig& config) {
  constexpr std::array<std::string_view, 8> kFormats = {"",
                                                        "dense",
                                                        "float-quantized",
                                                        "naive-quantized",
                                                        "pack-quantized",
                                                        "nvfp4-pack-quantized",
                                                        "mxfp4-pack-quantized",
                                                        "mixed-precision"};
  const std::string format = SW_TRY(text_of(object, "format"));
  if (std::ranges::find(kFormats, format) == kFormats.end()) {
    config.unsupported = translated("with format '{}'", format);
    return {};
  }
  const auto sparsity = object.find("sparsity_config");
  if (sparsity != object.end() && sparsity->is_object()) {
    const std::string sparse = SW_TRY(text_of(*sparsity, "format"));
    if (!sparse.empty() && sparse != "dense") {
      config.unsupported = translated("with sparsity_config of format '{}'", sparse);
    }
  }
  const auto transforms = object.find("transform_config");
  if (transforms != object.end() && transforms->is_object() &&
      is_filled(*transforms, "config_groups")) {
    config.unsupported = "with transform_config, which turns weights";
  }
  const auto groups = object.find("config_groups");
  if (groups == object.end() || !groups->is_object() || groups->empty()) {
    config.unsupported = "without config_groups";
    return {};
  }
  config.packing = QuantisationConfig::Packing::kCompressedTensors;
  config.has_float8 = false;
  for (const nlohmann::json& group : *groups) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (weights == group.end() || !weights->is_object()) continue;
    const std::string own = SW_TRY(text_of(group, "format"));
    SW_TRY(WeightsReader(*weights, own.empty() ? format : own, config).run());
  }
  if (!config.has_float8 && config.packed.empty() && config.unsupported.empty()) {
    config.unsupported = "without weights in its config_groups";
  }
  return {};
}

Status read_gptq(const nlohmann::json& object, QuantisationConfig& config) {
  const std::int64_t bits = SW_TRY(number_of(object, "bits", 0));
  std::string format = SW_TRY(text_of(object, "checkpoint_format"));
  if (format.empty()) format = SW_TRY(text_of(object, "format"));
  const std::string words = SW_TRY(text_of(object, "pack_dtype"));
  if (bits != 2 && bits != 4 && bits != 8) {
    config.unsupported = translated("with {} bits", bits);
  } else if (!format.empty() && format != "gptq" && format != "gptq_v2") {
    config.unsupported = fmt::format("with checkpoint_format '{}'", format);
  } else if (SW_TRY(flag_of(object, "is_marlin_format", false))) {
    config.unsupported = "with is_marlin_format";
  } else if (!words.empty() && words != "int32") {
    config.unsupported = fmt::format("with pack_dtype '{}'", words);
  }
  PackedWeights packed{PackedWeights::Kind::kIntegers, static_cast<int>(bits),
                       SW_TRY(group_size(object)), false};
  packed.is_ordered = SW_TRY(flag_of(object, "desc_act", false));
  config.packed = {packed};
  config.packing = QuantisationConfig::Packing::kGptq;
  config.has_lesser_zeros = format != "gptq_v2";
  // Keys with a minus leave modules out, which are not packed then.
  const auto rules = object.find("dynamic");
  if (rules != object.end() && rules->is_object()) {
    for (const auto& rule : rules->items()) config.is_varied |= !rule.key().starts_with("-");
  }
  return {};
}

Status read_awq(const nlohmann::json& object, QuantisationConfig& config) {
  std::int64_t bits = SW_TRY(number_of(object, "bits", 0));
  if (bits == 0) bits = SW_TRY(number_of(object, "w_bit", 0));
  std::string version = SW_TRY(text_of(object, "version"));
  for (const char* key : {"format", "checkpoint_format"}) {
    if (version.empty()) version = SW_TRY(text_of(object, key));
  }
  const std::string backend = SW_TRY(text_of(object, "backend"));
  if (bits != 4) {
    config.unsupported = translated("with {} bits", bits);
  } else if (!version.empty() && version != "gemm" && version != "GEMM") {
    config.unsupported = translated("with version '{}'", version);
  } else if (backend == "llm-awq") {
    config.unsupported = "with backend 'llm-awq'";
  } else if (!SW_TRY(flag_of(object, "zero_point", true))) {
    config.unsupported = "without zero_point";
  }
  nlohmann::json sizes = object;
  if (!object.contains("group_size") && object.contains("q_group_size")) {
    sizes["group_size"] = object.at("q_group_size");
  }
  config.packed = {{PackedWeights::Kind::kIntegers, 4, SW_TRY(group_size(sizes)), false}};
  config.packing = QuantisationConfig::Packing::kAwq;
  return {};
}

// Modules that AutoRound has given another width or group than the rest; 16 bits leave one plain.
Result<bool> has_other_widths(const nlohmann::json& object) {
  const auto modules = object.find("extra_config");
  if (modules == object.end() || !modules->is_object()) return false;
  const std::int64_t bits = SW_TRY(number_of(object, "bits", 0));
  const std::int64_t group = SW_TRY(number_of(object, "group_size", -1));
  for (const nlohmann::json& module : *modules) {
    if (!module.is_object()) continue;
    const std::int64_t own = SW_TRY(number_of(module, "bits", bits));
    if (own >= 16) continue;
    if (own != bits || SW_TRY(number_of(module, "group_size", group)) != group) return true;
  }
  return false;
}

// AutoRound packs as AutoGPTQ, GPTQModel or AutoAWQ do, and its config says which. (auto_round:
// export_to_autoround, dynamic_import_quant_linear_for_packing)
Status read_auto_round(const nlohmann::json& object, QuantisationConfig& config) {
  constexpr std::array<std::string_view, 4> kZerosAsTheyAre = {
      "auto_round", "auto_round:gptqmodel", "auto_round:exllamav2", "auto_round:tritonv2"};
  std::string packing = SW_TRY(text_of(object, "packing_format"));
  if (packing.empty()) packing = "auto_round:auto_gptq";
  nlohmann::json as = object;
  const bool is_second = std::ranges::find(kZerosAsTheyAre, packing) != kZerosAsTheyAre.end();
  if (packing == "auto_round:auto_awq" || packing == "auto_round:awq") {
    SW_TRY(read_awq(as, config));
  } else if (is_second || packing.starts_with("auto_round:auto_gptq") ||
             packing.starts_with("auto_round:gptq")) {
    as["checkpoint_format"] = is_second ? "gptq_v2" : "gptq";
    SW_TRY(read_gptq(as, config));
  } else {
    config.unsupported = translated("with packing_format '{}'", packing);
  }
  const std::string type = SW_TRY(text_of(object, "data_type"));
  if (!type.empty() && type != "int") {
    config.unsupported = translated("with data_type '{}'", type);
  } else if (SW_TRY(number_of(object, "act_bits", 16)) < 16) {
    config.unsupported = "with quantised activations (act_bits)";
  } else if (SW_TRY(has_other_widths(object))) {
    config.unsupported = "with modules of other bits or group_size (extra_config)";
  }
  return {};
}

Status read_modelopt_algorithm(std::string_view algorithm, QuantisationConfig& config) {
  if (algorithm == "FP8") {
    config.has_float8 = true;
  } else if (algorithm == "NVFP4") {
    config.packed = {{PackedWeights::Kind::kNvfp4, 4, 16}};
    config.packing = QuantisationConfig::Packing::kModelOpt;
  } else if (config.unsupported.empty()) {
    config.unsupported = fmt::format("with quant_algo '{}'", algorithm);
  }
  return {};
}

Status read_modelopt(const nlohmann::json& object, QuantisationConfig& config) {
  config.scales = Scales::kTensor;
  config.has_float8 = false;
  const std::string algorithm = SW_TRY(text_of(object, "quant_algo"));
  const auto layers = object.find("quantized_layers");
  if (algorithm != "MIXED_PRECISION" || layers == object.end() || !layers->is_object()) {
    return read_modelopt_algorithm(algorithm, config);
  }
  for (const nlohmann::json& layer : *layers) {
    if (!layer.is_object()) continue;
    const std::string own = SW_TRY(text_of(layer, "quant_algo"));
    SW_TRY(read_modelopt_algorithm(own, config));
  }
  return {};
}

// mlx_lm names no method: {"group_size": 64, "bits": 4}, perhaps with a mode or modules of their
// own.
bool is_of_mlx(const nlohmann::json& object) {
  return object.contains("group_size") && object.contains("bits");
}

Status read_method(const nlohmann::json& object, QuantisationConfig& config) {
  config.method = SW_TRY(text_of(object, "quant_method"));
  if (config.method == "fp8") {
    config.has_exponents = SW_TRY(text_of(object, "scale_fmt")) == "ue8m0";
    return read_block(object, "weight_block_size", config);
  }
  if (config.method == "compressed-tensors") return read_groups(object, config);
  if (config.method == "modelopt" || config.method == "modelopt_fp4") {
    return read_modelopt(object, config);
  }
  if (config.method == "gptq") return read_gptq(object, config);
  if (config.method == "awq") return read_awq(object, config);
  if (config.method == "auto-round") return read_auto_round(object, config);
  if (config.method == "mxfp4") {
    config.scales = Scales::kFp4Groups;
  } else if (config.method == "fbgemm_fp8") {
    config.scales = Scales::kRows;
  } else {
    config.unsupported = "which is not read";
    if (config.method.empty()) config.method = is_of_mlx(object) ? "mlx" : "(none)";
  }
  return {};
}

}  // namespace

Result<QuantisationConfig> read_quantisation_config(std::string_view config_json) {
  QuantisationConfig config;
  if (config_json.empty()) return config;
  const nlohmann::json document = SW_TRY(parse_json(config_json, "config.json"));
  const nlohmann::json* place = &document;
  if (document.is_object() && !document.contains("quantization_config") &&
      document.contains("text_config")) {
    place = &document["text_config"];
  }
  if (!place->is_object()) return config;
  const auto found = place->find("quantization_config");
  if (found == place->end() || found->is_null()) return config;
  if (!found->is_object()) {
    return fail(Code::kJsonCorrupt,
                "config.json: quantization_config: found {}, expected an object",
                found->type_name());
  }
  SW_TRY(read_method(*found, config));
  return config;
}

}  // namespace shardwright
