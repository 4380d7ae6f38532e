// SPDX-License-Identifier: Apache-2.0
#include "format/carried_files.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/translated.h"
#include "codec/stand_in.h"
#include "codec/torch_file.h"
#include "format/hf_artifacts.h"
#include "format/mca_config.h"
#include "format/mlite/rank_files.h"
#include "format/model_config.h"
#include "io/source_files.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

// Of Megatron-Bridge: how far the run is.
constexpr std::string_view kTrainState = "train_state.pt";

// What a Megatron directory carries besides its entries.
Status list_companions(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    const bool is_file = entry.name == kRunConfigFile || entry.name == kTrainState;
    const bool is_folder = entry.name == "tokenizer" || entry.name == "hf";
    const bool is_of_rank = is_mlite_rank_file(entry);
    if (!is_file && !is_folder && !is_of_rank) continue;
    if (entry.problem) {
      SW_TRY(defects.report(std::unexpected(*entry.problem)));
      continue;
    }
    if (is_of_rank) {
      checkpoint.rank_files.emplace_back(entry.name,
                                         add_file(checkpoint, entry.name, entry.size_bytes));
    }
    if (is_file && !entry.is_directory) {
      checkpoint.companions.emplace_back(entry.name,
                                         add_file(checkpoint, entry.name, entry.size_bytes));
    }
    if (!is_folder || !entry.is_directory) continue;
    for (const DirectoryEntry& inner : SW_TRY(list_hf_artifacts(directory, entry.name, defects))) {
      const std::string path = entry.name + "/" + inner.name;
      if (path == kCarriedKeysFile) continue;
      const StoredObject object = add_file(checkpoint, path, inner.size_bytes);
      if (entry.name == "hf") {
        checkpoint.artifacts.emplace_back(inner.name, object);
      } else {
        checkpoint.companions.emplace_back(path, object);
      }
    }
  }
  return {};
}

}  // namespace

Result<std::string> read_if_there(const Directory& directory, std::string_view path,
                                  std::uint64_t limit) {
  if (!directory.exists(path)) return std::string();
  return read_whole(directory, path, limit);
}

StoredObject add_file(Checkpoint& checkpoint, const std::string& path, std::uint64_t size) {
  checkpoint.catalog.files.push_back(path);
  return {path, checkpoint.files->add(path), {0, size}};
}

Status read_hf_artifacts(Checkpoint& checkpoint, Defects& defects, std::string_view folder) {
  const Directory& directory = *checkpoint.directory;
  const std::string before = folder.empty() ? "" : std::string(folder) + "/";
  checkpoint.hf_config = SW_TRY(read_model_config(directory, before, checkpoint.notes));
  for (const DirectoryEntry& entry : SW_TRY(list_hf_artifacts(directory, folder, defects))) {
    checkpoint.artifacts.emplace_back(entry.name,
                                      add_file(checkpoint, before + entry.name, entry.size_bytes));
  }
  return {};
}

Status read_carried(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  checkpoint.hf_config = SW_TRY(read_model_config(directory, "hf/", checkpoint.notes));
  checkpoint.source_keys = SW_TRY(read_if_there(directory, kCarriedKeysFile, kMostTextBytes));
  checkpoint.run_config = SW_TRY(read_if_there(directory, kRunConfigFile, kMostTextBytes));
  if (checkpoint.run_config.empty() && directory.exists(kRunConfigFile)) {
    checkpoint.notes.push_back(
        translated("{} is empty: what it said of the run is lost", kRunConfigFile));
  }
  SW_TRY(list_companions(checkpoint, defects));
  return defects.report(read_mca_config(checkpoint, defects));
}

Status check_carried(const Checkpoint& checkpoint, Defects& defects) {
  constexpr std::array<std::string_view, 2> kNeverEmpty = {".json", ".model"};
  constexpr std::array<std::string_view, 6> kText = {".json",  ".model",    ".txt",
                                                     ".jinja", ".tiktoken", ".py"};
  const auto ends_with_any = [](std::string_view name, std::span<const std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
  };
  for (const auto* list : {&checkpoint.artifacts, &checkpoint.companions}) {
    for (const auto& [name, object] : *list) {
      if (name == kTrainState) {
        const auto file = checkpoint.files->get(object.file);
        if (!file) continue;  // the step that needs it says so
        const auto state = TorchFile::open(**file);
        if (state) continue;
        Error error = state.error();
        const bool is_of_state = !Defects::is_outage(error);
        if (is_of_state && !Defects::is_one(error)) error.code = Code::kStateUnreadable;
        SW_TRY(defects.report(std::unexpected(std::move(error))));
        continue;
      }
      if (!ends_with_any(name, kText)) continue;
      if (object.range.length == 0 && !ends_with_any(name, kNeverEmpty)) continue;
      const auto file = checkpoint.files->get(object.file);
      if (!file) continue;  // the step that needs it says so
      SW_TRY(defects.report(
          refuse_stand_in(Code::kJsonCorrupt, **file, "what its name says", Contents::kText)));
    }
  }
  return {};
}

}  // namespace shardwright
