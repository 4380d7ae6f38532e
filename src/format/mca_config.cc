// SPDX-License-Identifier: Apache-2.0
#include "format/mca_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/fail.h"
#include "codec/json_text.h"
#include "format/added_document.h"
#include "format/carried_files.h"
#include "format/folder.h"
#include "format/model_files.h"
#include "io/watched_directory.h"
#include "remote/open_path.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::string_view kMcaConfig = "mca_config.json";
constexpr std::string_view kModelFolder = "/dist_model";

// The folder that has iterations.
std::optional<std::string> run_folder(const Checkpoint& checkpoint) {
  const std::string path = whole_path(checkpoint.location.path);
  const std::optional<std::string> above = folder_above(path);
  return above && path.ends_with(kModelFolder) ? folder_above(*above) : above;
}

// config.json is a text within the text, as transformers would write it.
Result<std::string> config_in(const std::string& text) {
  const nlohmann::json document = SW_TRY(parse_json(text, kMcaConfig));
  const auto found = document.is_object() ? document.find("hf_config_json") : document.end();
  if (found == document.end() || !found->is_string()) return std::string();
  auto config = found->get<std::string>();
  const auto parsed = parse_json(config, kMcaConfig);
  return parsed && parsed->is_object() ? std::move(config) : std::string();
}

}  // namespace

Status read_mca_config(Checkpoint& checkpoint, Defects& defects) {
  if (!checkpoint.hf_config.empty()) return {};
  const std::optional<std::string> folder = run_folder(checkpoint);
  if (!folder) return {};
  auto opened = open_directory(*folder);
  if (!opened || !(*opened)->exists(kMcaConfig)) return {};
  const auto directory = std::make_shared<const WatchedDirectory>(*std::move(opened));
  const std::string text = SW_TRY(read_whole(*directory, kMcaConfig, kMostTextBytes));
  std::string config = SW_TRY(config_in(text));
  if (config.empty()) return {};
  checkpoint.hf_config = std::move(config);
  for (const DirectoryEntry& entry : SW_TRY(directory->list(""))) {
    const bool is_wanted = describes_model(entry.name) && entry.name != kHfConfigFile;
    if (entry.is_directory || !is_wanted) continue;
    if (entry.problem) {
      SW_TRY(defects.report(std::unexpected(*entry.problem)));
      continue;
    }
    SW_TRY(add_document(directory, entry.name, entry.name, checkpoint));
  }
  checkpoint.notes.push_back(
      translated("config.json is what {} of mcore_adapter says; --hf-config names another",
                 path_in(*folder, kMcaConfig)));
  return {};
}

}  // namespace shardwright
