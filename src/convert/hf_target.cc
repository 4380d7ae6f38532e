// SPDX-License-Identifier: Apache-2.0
#include "convert/hf_target.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"
#include "format/hf_reader.h"

namespace shardwright {
namespace {

// Where NVIDIA's ModelOpt repeats what config.json says.
constexpr std::string_view kQuantisationFile = "hf_quant_config.json";
constexpr std::uint64_t kMostArtifactBytes = std::uint64_t{256} << 20;

// Weights that are still stored as values and scales.
bool has_quantised(const TargetParts& parts) {
  return std::ranges::any_of(parts.tensors, [](const DraftTensor& tensor) {
    const DType dtype = tensor.desc.dtype;
    return dtype >= DType::kF8E4M3 && dtype <= DType::kF4E2M1X2;
  });
}

// The quantisation that a config speaks of, at its top or of its language model.
bool erase_quantisation(nlohmann::ordered_json& document) {
  bool erased = document.erase("quantization_config") > 0;
  const auto text = document.find("text_config");
  if (text != document.end() && text->is_object()) {
    erased = text->erase("quantization_config") > 0 || erased;
  }
  return erased;
}

// The numbers of prediction layers that a config speaks of become 0, as Megatron-Bridge writes
// them.
std::vector<std::string> erase_prediction(nlohmann::ordered_json& object) {
  std::vector<std::string> changed;
  for (const std::string_view key : kPredictionKeys) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer() || *found == 0) continue;
    *found = 0;
    changed.emplace_back(key);
  }
  return changed;
}

// What of a config.json is no longer so.
struct ConfigEdits {
  std::optional<DType> dtype;
  bool is_dequantised = false;
  bool without_prediction = false;
};

// config.json with these edits: only these fields are changed, wherever the config spells them.
// Empty where nothing has to be.
Result<std::string> edited_config(std::string_view config, const ConfigEdits& edits,
                                  std::vector<std::string>& notes) {
  nlohmann::ordered_json document = SW_TRY(parse_ordered_json(config, "config.json"));
  if (!document.is_object()) return fail(Code::kJsonCorrupt, "config.json: expected an object");
  const std::size_t told = notes.size();
  if (edits.is_dequantised && erase_quantisation(document)) {
    notes.push_back("config.json: quantization_config is removed: no tensor is quantised now");
  }
  if (edits.without_prediction) {
    std::vector<std::string> changed = erase_prediction(document);
    const auto text = document.find("text_config");
    if (text != document.end() && text->is_object()) {
      for (std::string& key : erase_prediction(*text)) changed.push_back("text_config." + key);
    }
    for (const std::string& key : changed) {
      notes.push_back(fmt::format("config.json: {} becomes 0: there are no such layers", key));
    }
  }
  if (edits.dtype) {
    const char* const key = document.contains("torch_dtype") ? "torch_dtype" : "dtype";
    document[key] = torch_name(*edits.dtype);
    notes.push_back(fmt::format("config.json: {} becomes {}", key, torch_name(*edits.dtype)));
  }
  return notes.size() > told ? document.dump(2) + "\n" : std::string();
}

bool has_file(const TargetParts& parts, std::string_view path) {
  return std::any_of(parts.files.begin(), parts.files.end(),
                     [&](const TargetFile& file) { return file.path == path; });
}

void tell_left_out(std::string_view path, std::vector<std::string>& notes) {
  notes.push_back(fmt::format("{} is left out: no tensor is quantised now", path));
}

// Files of the user's config folder, by value: they are few and small, and no part of the source.
Status add_files_of(const std::string& folder_path, std::string_view without, TargetParts& parts,
                    std::vector<std::string>& notes) {
  const std::unique_ptr<Directory> folder = SW_TRY(open_local_directory(folder_path));
  for (const DirectoryEntry& entry : SW_TRY(list_hf_artifacts(*folder, ""))) {
    if (has_file(parts, entry.name)) continue;
    if (entry.name == without) {
      tell_left_out(without, notes);
      continue;
    }
    std::string bytes = SW_TRY(read_whole(*folder, entry.name, kMostArtifactBytes));
    parts.files.push_back({entry.name, std::move(bytes)});
  }
  return {};
}

}  // namespace

Status finish_hf(const ConvertRequest& request, const Checkpoint& source, const ModelFacts* facts,
                 TargetParts& parts, std::vector<std::string>& notes) {
  const std::string config = facts != nullptr ? facts->config_text : source.hf_config;
  const bool is_dequantised = (facts != nullptr || request.dtype) && !has_quantised(parts);
  std::string edited;
  if (!config.empty()) {
    const bool without_prediction = facts != nullptr && !facts->has_prediction_layers;
    edited =
        SW_TRY(edited_config(config, {request.dtype, is_dequantised, without_prediction}, notes));
  }
  if (!edited.empty()) {
    std::erase_if(parts.files, [](const TargetFile& file) { return file.path == "config.json"; });
    parts.files.push_back({"config.json", std::move(edited)});
  } else if (facts != nullptr && facts->config_is_ours) {
    parts.files.push_back({"config.json", config});
  }
  const std::string_view without = is_dequantised ? kQuantisationFile : std::string_view();
  if (!request.hf_config_dir.empty()) {
    return add_files_of(request.hf_config_dir, without, parts, notes);
  }
  for (const auto& [path, object] : source.artifacts) {
    if (has_file(parts, path)) continue;
    if (path == without) {
      tell_left_out(path, notes);
      continue;
    }
    parts.artifacts.emplace_back(path, object);
  }
  return {};
}

Status finish_merged(const std::string& config, bool is_quantised, const std::string& folder,
                     TargetParts& parts, std::vector<std::string>& notes) {
  ConfigEdits edits;
  edits.is_dequantised = !is_quantised;
  const std::string edited = SW_TRY(edited_config(config, edits, notes));
  parts.files.push_back({"config.json", edited.empty() ? config : edited});
  if (folder.empty()) return {};
  const std::string_view without = is_quantised ? std::string_view() : kQuantisationFile;
  return add_files_of(folder, without, parts, notes);
}

}  // namespace shardwright
