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

// config.json is a text within the text, as transformers would write it; nullopt for what is none.
std::optional<std::string> config_in(const std::string& text) {
  const auto document = parse_json(text, kMcaConfig);
  if (!document || !document->is_object()) return std::nullopt;
  const auto found = document->find("hf_config_json");
  if (found == document->end() || found->is_null()) return std::string();
  if (!found->is_string()) return std::nullopt;
  auto config = found->get<std::string>();
  const auto parsed = parse_json(config, kMcaConfig);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  return config;
}

}  // namespace

Status read_mca_config(Checkpoint& checkpoint, Defects& defects) {
  if (!checkpoint.hf_config.empty()) return {};
  const std::optional<std::string> folder = run_folder(checkpoint);
  if (!folder) return {};
  auto opened = open_directory(*folder);
  if (!opened || !(*opened)->exists(kMcaConfig)) return {};
  const auto directory = std::make_shared<const WatchedDirectory>(*std::move(opened));
  const std::string path = path_in(*folder, kMcaConfig);
  const Result<std::string> text = read_whole(*directory, kMcaConfig, kMostTextBytes);
  std::optional<std::string> config = text ? config_in(*text) : std::nullopt;
  if (!config) {
    // No part of the checkpoint: whoever needs a config.json finds that there is none.
    checkpoint.notes.push_back(translated("{} has no config.json that can be read", path));
    return {};
  }
  if (config->empty()) return {};
  checkpoint.hf_config = *std::move(config);
  SW_TRY(add_descriptions(directory, "", kHfConfigFile, checkpoint, defects));
  checkpoint.notes.push_back(
      translated("config.json is what {} of mcore_adapter says; --hf-config names another", path));
  return {};
}

}  // namespace shardwright
