// SPDX-License-Identifier: Apache-2.0
#include "format/model_config.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/translated.h"
#include "codec/json_text.h"
#include "format/carried_files.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kQuantisation = "quantization_config";
constexpr const char* kCompression = "compression_config";
constexpr std::string_view kConfig = "config.json";

bool says_quantisation(const Json& config) {
  if (config.contains(kQuantisation)) return true;
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() && text->contains(kQuantisation);
}

// What ModelOpt says of the weights beside config.json, as it says it inside of newer ones; null
// where it says nothing.
Result<Json> modelopt_quantisation(const Directory& directory, std::string_view folder) {
  const std::string path = std::string(folder) + std::string(kModelOptFile);
  const std::string text = SW_TRY(read_if_there(directory, path, kMostTextBytes));
  if (text.empty()) return Json();
  const Json document = SW_TRY(parse_ordered_json(text, path));
  const auto said = document.is_object() ? document.find("quantization") : document.end();
  if (said == document.end() || !said->is_object() || !said->contains("quant_algo") ||
      said->at("quant_algo").is_null()) {
    return Json();
  }
  Json quantisation = {{"quant_method", "modelopt"}};
  quantisation.update(*said);
  return quantisation;
}

}  // namespace

Result<std::string> read_model_config(const Directory& directory, std::string_view folder,
                                      Notes& notes) {
  std::string text =
      SW_TRY(read_if_there(directory, std::string(folder) + std::string(kConfig), kMostTextBytes));
  if (text.empty()) return text;
  const bool has_file = directory.exists(std::string(folder) + std::string(kModelOptFile));
  if (!has_file && text.find(kCompression) == std::string::npos) return text;
  Result<Json> config = parse_ordered_json(text, "config.json");
  if (!config || !config->is_object() || says_quantisation(*config)) return text;
  std::string_view from = kCompression;
  Json quantisation = config->value(kCompression, Json());
  config->erase(kCompression);
  if (!quantisation.is_object()) {
    from = kModelOptFile;
    quantisation = SW_TRY(modelopt_quantisation(directory, folder));
  }
  if (!quantisation.is_object()) return text;
  (*config)[kQuantisation] = std::move(quantisation);
  notes.push_back(translated("config.json: quantization_config is what {} says", from));
  return config->dump(2) + "\n";
}

Result<std::string> read_named_config(const Directory& folder) {
  if (!folder.exists(kConfig)) return read_whole(folder, std::string(kConfig), kMostTextBytes);
  Notes told;
  return read_model_config(folder, "", told);
}

}  // namespace shardwright
