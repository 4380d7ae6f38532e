// SPDX-License-Identifier: Apache-2.0
#include "convert/hf_documents.h"

#include <algorithm>

#include "base/fail.h"
#include "format/config_edits.h"
#include "format/hf_artifacts.h"
#include "format/model_config.h"
#include "format/model_files.h"
#include "format/weight_names.h"
#include "layout/model_head.h"
#include "model/config_check.h"
#include "remote/open_path.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostArtifactBytes = std::uint64_t{256} << 20;

bool has_file(const TargetParts& parts, std::string_view path) {
  return std::any_of(parts.files.begin(), parts.files.end(),
                     [&](const TargetFile& file) { return file.path == path; });
}

bool has_artifact(const TargetParts& parts, std::string_view path) {
  return std::ranges::any_of(parts.artifacts,
                             [&](const auto& artifact) { return artifact.first == path; });
}

bool has_tokenizer(const TargetParts& parts) {
  const auto is_one = [](std::string_view path) { return is_of_tokenizer(path); };
  return std::ranges::any_of(parts.files, is_one, &TargetFile::path) ||
         std::ranges::any_of(parts.artifacts, is_one, &std::pair<std::string, StoredObject>::first);
}

// The one that a run keeps beside its weights (Megatron-LM, Megatron-Bridge). Files of two
// tokenizers are not mixed.
void add_own_tokenizer(const Checkpoint& source, TargetParts& parts,
                       std::vector<std::string>& notes) {
  constexpr std::string_view kFolder = "tokenizer/";
  if (has_tokenizer(parts)) return;
  std::size_t count = 0;
  for (const auto& [path, object] : source.companions) {
    if (!path.starts_with(kFolder)) continue;
    std::string name = path.substr(kFolder.size());
    // Some tokenizers keep a config.json, which is not the model's.
    if (name == kHfConfigFile || has_file(parts, name) || has_artifact(parts, name)) continue;
    parts.artifacts.emplace_back(std::move(name), object);
    ++count;
  }
  if (count > 0) {
    notes.push_back(translated("the tokenizer goes along: {} files of {}", count, kFolder));
  }
}

void tell_left_out(std::string_view path, std::vector<std::string>& notes) {
  notes.push_back(translated("{} is left out: no tensor is quantised now", path));
}

bool is_of_trainer(const Checkpoint& source) {
  const SourceTraits& traits = source.location.traits;
  return traits.is_named_by_family || traits.records != Records::kNone;
}

// One linear, as transformers' classes have it.
std::optional<ConfigHead> config_head_of(const TargetParts& parts) {
  std::optional<ConfigHead> head;
  for (const DraftTensor& tensor : parts.tensors) {
    const TensorDesc& desc = tensor.desc;
    if (!has_head_name(desc.name)) continue;
    const std::string_view stem = std::string_view(desc.name).substr(0, desc.name.rfind('.'));
    if (!stem.ends_with("score") && !stem.ends_with("classifier")) continue;
    if (!head) head.emplace();
    if (desc.name.ends_with(".bias")) head->has_bias = true;
    if (desc.name.ends_with(".weight") && desc.shape.size() == 2) {
      head->name = desc.name;
      head->rows = desc.shape[0];
    }
  }
  return head && head->rows > 0 ? head : std::nullopt;
}

// Files of the user's config folder, by value: they are few and small, and no part of the source.
Status add_files_of(const std::string& folder_path, std::string_view below,
                    std::string_view without, TargetParts& parts, std::vector<std::string>& notes) {
  const std::unique_ptr<Directory> folder = SW_TRY(open_directory(folder_path));
  Defects first;
  for (const DirectoryEntry& entry : SW_TRY(list_hf_artifacts(*folder, "", first))) {
    std::string path = std::string(below) + entry.name;
    if (has_file(parts, path)) continue;
    if (entry.name == without) {
      tell_left_out(without, notes);
      continue;
    }
    std::string bytes = SW_TRY(read_whole(*folder, entry.name, kMostArtifactBytes));
    parts.files.push_back({std::move(path), std::move(bytes)});
  }
  return {};
}

// What of config.json is untrue of the tensors that are written.
ConfigEdits edits_of(const ConvertRequest& request, const Checkpoint& source,
                     const ModelFacts* facts, const QuantiseChoice& choice,
                     const TargetParts& parts, bool is_dequantised) {
  ConfigEdits edits;
  edits.is_dequantised = is_dequantised;
  edits.vocabulary = request.extend_vocab;
  edits.quantisation = choice.config;
  edits.expert_dtype = choice.expert_dtype;
  // A trainer may save the config of the language model that it began with.
  if (facts != nullptr || is_of_trainer(source)) edits.head = config_head_of(parts);
  edits.without_prediction = facts != nullptr && !facts->has_prediction_layers;
  // Of a Hugging Face model that stays as it is, nothing in config.json becomes untrue.
  if (facts != nullptr || request.dtype) edits.dtype = written_dtype(parts.tensors);
  // Blocks that are FP8 already say nothing of the others' type.
  if (!choice.config.empty() && request.dtype) edits.dtype = request.dtype;
  edits.scope = request.dtype ? DtypeScope::kAll : DtypeScope::kSame;
  return edits;
}

// The source's own files, where they lie.
void take_artifacts(const Checkpoint& source, std::string_view without, TargetParts& parts,
                    std::vector<std::string>& notes) {
  for (const auto& [path, object] : source.artifacts) {
    if (has_file(parts, path)) continue;
    if (path == without) {
      tell_left_out(path, notes);
      continue;
    }
    parts.artifacts.emplace_back(path, object);
  }
}

// One that was made of what the model's makers say of it elsewhere lies in no file.
void add_config_without_file(const Checkpoint& source, const std::string& config,
                             TargetParts& parts, std::vector<std::string>& notes) {
  const bool is_in_file = std::ranges::any_of(
      source.artifacts, [](const auto& artifact) { return artifact.first == kHfConfigFile; });
  if (is_in_file || has_file(parts, kHfConfigFile)) return;
  if (!config.empty()) {
    parts.files.push_back({std::string(kHfConfigFile), config});
    return;
  }
  notes.emplace_back(
      "no config.json is near, so the model is written without one, by the names that are "
      "stored; --hf-config gives the model's");
}

}  // namespace

Status add_hf_documents(const ConvertRequest& request, const Checkpoint& source,
                        const ModelFacts* facts, const QuantiseChoice& choice, TargetParts& parts,
                        std::vector<std::string>& notes) {
  const std::string config = facts != nullptr ? facts->config_text : source.hf_config;
  parts.weight_stem = weight_stem_of(config);
  const bool is_quantised = !choice.config.empty();
  const bool is_dequantised =
      (facts != nullptr || request.dtype) && !is_quantised && !has_quantised(parts.tensors);
  std::string edited;
  if (!config.empty()) {
    edited = SW_TRY(edited_config(
        config, edits_of(request, source, facts, choice, parts, is_dequantised), notes));
  }
  // Nothing is cast unasked, but what loads it may.
  if (facts == nullptr && !request.dtype && !is_quantised && !config.empty()) {
    const std::string other = contradicted_dtype(config, descs_of(parts.tensors));
    if (!other.empty()) notes.push_back(other + translated("; --dtype casts the tensors"));
  }
  if (!edited.empty()) {
    std::erase_if(parts.files, [](const TargetFile& file) { return file.path == kHfConfigFile; });
    parts.files.push_back({std::string(kHfConfigFile), std::move(edited)});
  } else if (facts != nullptr && facts->config_is_ours) {
    parts.files.push_back({std::string(kHfConfigFile), config});
  }
  const std::string_view without =
      is_dequantised || is_quantised ? kModelOptFile : std::string_view();
  if (request.hf_config_dir.empty()) {
    take_artifacts(source, without, parts, notes);
    add_config_without_file(source, config, parts, notes);
  } else {
    SW_TRY(add_files_of(request.hf_config_dir, "", without, parts, notes));
  }
  add_own_tokenizer(source, parts, notes);
  return {};
}

Status add_documents_beside(const ConvertRequest& request, const Checkpoint& source,
                            TargetParts& parts, std::vector<std::string>& notes) {
  const std::string below = parts.folder + "hf/";
  if (!request.hf_config_dir.empty()) {
    return add_files_of(request.hf_config_dir, below, {}, parts, notes);
  }
  for (const auto& [name, object] : source.artifacts) {
    parts.artifacts.emplace_back(below + name, object);
  }
  return {};
}

Status add_merged_documents(const std::string& config, bool is_quantised, const std::string& folder,
                            TargetParts& parts, std::vector<std::string>& notes) {
  ConfigEdits edits;
  edits.is_dequantised = !is_quantised;
  edits.dtype = written_dtype(parts.tensors);
  edits.scope = DtypeScope::kTop;
  const std::string edited = SW_TRY(edited_config(config, edits, notes));
  parts.files.push_back({std::string(kHfConfigFile), edited.empty() ? config : edited});
  if (folder.empty()) return {};
  const std::string_view without = is_quantised ? std::string_view() : kModelOptFile;
  return add_files_of(folder, "", without, parts, notes);
}

}  // namespace shardwright
