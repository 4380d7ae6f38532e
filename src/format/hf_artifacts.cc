// SPDX-License-Identifier: Apache-2.0
#include "format/hf_artifacts.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/prepare_ahead.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "codec/own_report.h"
#include "format/folder.h"
#include "format/model_files.h"
#include "io/own_output.h"

namespace shardwright {
namespace {

// Weights in any form, and states of a run (`random_states_0.pkl` of accelerate): what must not be
// carried along as an artifact.
constexpr std::array<std::string_view, 14> kWeightEndings = {
    ".safetensors", ".safetensors.index.json",
    ".bin",         ".bin.index.json",
    ".pt",          ".pth",
    ".gguf",        ".h5",
    ".msgpack",     ".onnx",
    ".distcp",      ".metadata",
    ".ckpt",        ".pkl"};

// Folders of files that go along with a model: the templates that a tokenizer has besides its first
// (transformers), and the modules that sentence-transformers puts behind the model, weights
// included: `1_Pooling`, `2_Dense`.
Result<std::vector<std::string>> folders_of_model(const Directory& directory,
                                                  std::string_view folder, Defects& defects) {
  constexpr const char* kTemplates = "additional_chat_templates";
  const std::string list = path_in(folder, "modules.json");
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  std::set<std::string> named = {kTemplates};
  if (directory.exists(list)) {
    const std::string text = SW_TRY(read_whole(directory, list, kMostBytes));
    const auto modules = parse_json(text, list, JsonLimits{kMostBytes, 16});
    if (!modules) {
      SW_TRY(defects.report(std::unexpected(modules.error())));
    } else if (modules->is_array()) {
      for (const nlohmann::json& module : *modules) {
        const auto path = module.is_object() ? module.find("path") : module.end();
        if (path != module.end() && path->is_string()) named.insert(path->get<std::string>());
      }
    }
  }
  std::vector<std::string> folders;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(folder))) {
    if (entry.is_directory && !entry.problem && named.contains(entry.name)) {
      folders.push_back(entry.name);
    }
  }
  return folders;
}

// Names that models have are not opened for it. A run's own log grows while the run reads.
bool is_report(const Directory& directory, std::string_view folder, const DirectoryEntry& entry) {
  if (is_usual_in_model(entry.name)) return false;
  const auto file = directory.look_into(path_in(folder, entry.name));
  if (!file) return false;  // whoever needs it says why
  if (is_own_output((*file)->version())) return true;
  std::string head(std::min<std::uint64_t>((*file)->size(), kReportHeadBytes), '\0');
  return (*file)->read_at(0, std::as_writable_bytes(std::span(head))) && is_own_report(head);
}

// What tells of a model goes along with none.
Status drop_reports(const Directory& directory, std::string_view folder,
                    std::vector<DirectoryEntry>& entries) {
  std::vector<DirectoryEntry> kept;
  const auto look = [&](std::size_t i) { return is_report(directory, folder, entries[i]); };
  const auto keep = [&](std::size_t i, bool is_one) -> Status {
    if (!is_one) kept.push_back(entries[i]);
    return {};
  };
  SW_TRY(read_ahead(entries.size(), look, keep));
  entries = std::move(kept);
  return {};
}

}  // namespace

Result<std::vector<DirectoryEntry>> list_hf_artifacts(const Directory& directory,
                                                      std::string_view folder, Defects& defects) {
  std::vector<DirectoryEntry> artifacts;
  for (DirectoryEntry& entry : SW_TRY(directory.list(folder))) {
    const bool is_weight = ends_as_any(entry.name, kWeightEndings);
    // Digests are of these very files: beside others they would be wrong.
    const bool is_digests = entry.name == "integrity.json" ||
                            entry.name == "shardwright-digests.jsonl" || entry.name == "model.sig";
    // With this file transformers looks for an adapter's weights, which no model carries along.
    const bool is_of_adapter = entry.name == "adapter_config.json";
    if (entry.is_directory || is_weight || is_digests || is_of_adapter) continue;
    if (entry.name.starts_with(".")) continue;
    if (entry.problem) {
      SW_TRY(defects.report(std::unexpected(*std::move(entry.problem))));
      continue;
    }
    artifacts.push_back(std::move(entry));
  }
  SW_TRY(drop_reports(directory, folder, artifacts));
  for (const std::string& module : SW_TRY(folders_of_model(directory, folder, defects))) {
    for (DirectoryEntry& entry : SW_TRY(directory.list(path_in(folder, module)))) {
      if (entry.is_directory || entry.name.starts_with(".")) continue;
      if (entry.problem) {
        SW_TRY(defects.report(std::unexpected(*std::move(entry.problem))));
        continue;
      }
      entry.name = module + "/" + entry.name;
      artifacts.push_back(std::move(entry));
    }
  }
  return artifacts;
}

}  // namespace shardwright
