// SPDX-License-Identifier: Apache-2.0
#include "model/quantisation_config.h"

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

using Scales = QuantisationConfig::Scales;

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Status read_block(const nlohmann::json& object, const char* key, QuantisationConfig& config) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  const bool is_pair = found->is_array() && found->size() == 2 &&
                       found->at(0).is_number_unsigned() && found->at(1).is_number_unsigned();
  const auto extent = [&](std::size_t i) { return is_pair ? found->at(i).get<std::int64_t>() : 0; };
  if (extent(0) < 1 || extent(1) < 1) {
    return fail(Code::kJsonCorrupt,
                "config.json: quantization_config: found {} {}, expected two positive numbers", key,
                found->dump());
  }
  config.scales = Scales::kBlocks;
  config.block = {extent(0), extent(1)};
  return {};
}

// compressed-tensors describes groups of modules; one scheme of eight-bit floats is understood.
Status read_groups(const nlohmann::json& object, QuantisationConfig& config) {
  const auto groups = object.find("config_groups");
  if (groups == object.end() || !groups->is_object() || groups->empty()) {
    config.unsupported = "without config_groups";
    return {};
  }
  std::string strategy;
  for (const nlohmann::json& group : *groups) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (weights == group.end() || !weights->is_object()) continue;
    const auto bits = weights->find("num_bits");
    const std::string type = text_of(*weights, "type");
    const std::string found = text_of(*weights, "strategy");
    if (bits == weights->end() || *bits != 8 || type != "float") {
      config.unsupported = fmt::format("with weights of {} bits and type '{}'",
                                       bits == weights->end() ? "unknown" : bits->dump(), type);
      return {};
    }
    if (!strategy.empty() && strategy != found) {
      config.unsupported = fmt::format("with strategies '{}' and '{}'", strategy, found);
      return {};
    }
    strategy = found;
    SW_TRY(read_block(*weights, "block_structure", config));
  }
  if (strategy == "tensor") {
    config.scales = Scales::kTensor;
  } else if (strategy == "channel") {
    config.scales = Scales::kRows;
  } else if (strategy != "block" || config.scales != Scales::kBlocks) {
    config.unsupported = fmt::format("with strategy '{}'", strategy);
  }
  return {};
}

Status read_method(const nlohmann::json& object, QuantisationConfig& config) {
  config.method = text_of(object, "quant_method");
  if (config.method == "fp8") return read_block(object, "weight_block_size", config);
  if (config.method == "compressed-tensors") return read_groups(object, config);
  if (config.method == "mxfp4") {
    config.scales = Scales::kFp4Groups;
  } else if (config.method == "fbgemm_fp8") {
    config.scales = Scales::kRows;
  } else if (config.method == "modelopt") {
    const std::string algorithm = text_of(object, "quant_algo");
    config.scales = Scales::kTensor;
    if (algorithm != "FP8") config.unsupported = fmt::format("with quant_algo '{}'", algorithm);
  } else {
    config.unsupported = "which is not read";
    if (config.method.empty()) config.method = "(none)";
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
