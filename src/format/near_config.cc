// SPDX-License-Identifier: Apache-2.0
#include "format/near_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/fail.h"
#include "format/added_document.h"
#include "format/carried_files.h"
#include "format/folder.h"
#include "format/model_config.h"
#include "format/model_files.h"
#include "io/watched_directory.h"
#include "remote/open_path.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::string_view kAutomodelPlace = ".hf_metadata";  // what NeMo Automodel copies
constexpr std::array<std::string_view, 5> kPlaces = {"", "huggingface", "hf_assets",
                                                     kAutomodelPlace, "consolidated"};

// Whether a folder above holds a config, which is taken then, and what describes the model beside
// it. That it can't be looked into is no error of this model's.
Result<bool> take_from(const std::string& folder, Checkpoint& checkpoint, Defects& defects) {
  for (const std::string_view place : kPlaces) {
    const std::string path = path_in(folder, place);
    auto opened = open_directory(path);
    if (!opened || !(*opened)->exists(kHfConfigFile)) continue;
    const auto directory = std::make_shared<const WatchedDirectory>(*std::move(opened));
    checkpoint.hf_config = SW_TRY(read_model_config(*directory, "", checkpoint.notes));
    SW_TRY(add_descriptions(directory, "", "", checkpoint, defects));
    checkpoint.notes.push_back(translated(
        "config.json and what else describes the model are those of {}; --hf-config names others",
        path));
    return true;
  }
  return false;
}

bool has_artifact(const Checkpoint& checkpoint, std::string_view name) {
  return std::ranges::any_of(checkpoint.artifacts,
                             [&](const auto& artifact) { return artifact.first == name; });
}

// What lies in the folder itself comes before what another one in it has.
Status take_place(std::string_view place, Checkpoint& checkpoint, Defects& defects) {
  auto own = std::move(checkpoint.artifacts);
  checkpoint.artifacts.clear();
  SW_TRY(read_hf_artifacts(checkpoint, defects, place));
  auto found = std::exchange(checkpoint.artifacts, std::move(own));
  for (auto& [name, object] : found) {
    // Automodel's notes of its own about the shards.
    const bool is_note = place == kAutomodelPlace && !describes_model(name);
    if (is_note || has_artifact(checkpoint, name)) continue;
    checkpoint.artifacts.emplace_back(std::move(name), std::move(object));
  }
  return {};
}

}  // namespace

Status read_config_within(Checkpoint& checkpoint, Defects& defects) {
  if (!checkpoint.hf_config.empty()) return {};
  for (const std::string_view place : kPlaces) {
    if (!checkpoint.directory->exists(path_in(place, kHfConfigFile))) continue;
    if (!place.empty()) {
      checkpoint.notes.push_back(translated("config.json is that of {}", place));
    }
    return take_place(place, checkpoint, defects);
  }
  return {};
}

Status read_near_config(Checkpoint& checkpoint, Defects& defects) {
  SW_TRY(read_config_within(checkpoint, defects));
  if (!checkpoint.hf_config.empty()) return {};
  std::optional<std::string> above = folder_above(whole_path(checkpoint.location.path));
  for (int steps = 0; steps < 2 && above; ++steps) {
    if (SW_TRY(take_from(*above, checkpoint, defects))) return {};
    above = folder_above(*above);
  }
  return {};
}

}  // namespace shardwright
