// SPDX-License-Identifier: Apache-2.0
#include "format/files_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/translated.h"
#include "format/folder.h"
#include "remote/open_path.h"

namespace shardwright {

void tell_files_beside(Checkpoint& checkpoint) {
  const auto is_unread = [&](std::string_view file) {
    const std::vector<std::string>& read = checkpoint.catalog.files;
    return std::ranges::find(read, file) == read.end() && checkpoint.directory->exists(file);
  };
  for (const char* adapter :
       {"adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt"}) {
    if (!is_unread(adapter)) continue;
    checkpoint.notes.push_back(
        translated("{} is an adapter, and is left out; 'shardwright merge-adapter' merges one into "
                   "its base",
                   adapter));
  }
  // TRL's, and AReaL's, which has the output layer's state dict in it.
  for (const char* head : {"value_head.bin", "value_head.pt"}) {
    if (!is_unread(head)) continue;
    checkpoint.notes.push_back(
        translated("{} holds the head of a reward or value model, and is left out; saved as "
                   "value_head.safetensors it goes along",
                   head));
  }
  for (const char* optimizer : {"optimizer.pt", "optimizer.bin"}) {
    if (!is_unread(optimizer)) continue;
    checkpoint.notes.push_back(
        translated("{}: the optimizer's states number parameters as only the run knows, and are "
                   "left out",
                   optimizer));
    if (checkpoint.unread_optimizer_file.empty()) checkpoint.unread_optimizer_file = optimizer;
  }
}

Status tell_folders_beside(Checkpoint& checkpoint) {
  std::vector<std::string> folders;
  for (const DirectoryEntry& entry : SW_TRY(checkpoint.directory->list(""))) {
    const auto is_in_it = [&](const auto& artifact) {
      return artifact.first.starts_with(entry.name + "/");
    };
    if (!entry.is_directory || entry.name.starts_with(".")) continue;
    if (std::ranges::none_of(checkpoint.artifacts, is_in_it)) folders.push_back(entry.name);
  }
  if (folders.empty()) return {};
  checkpoint.notes.push_back(translated("{} folders beside the model are left out: {}",
                                        folders.size(), name_list(folders)));
  return {};
}

std::string modelopt_note(std::string_view where) {
  return translated(
      "{} says which modules ModelOpt has changed, and is left out: without it a run takes the "
      "model for an ordinary one",
      where);
}

Status tell_run_beside(Checkpoint& checkpoint) {
  for (const DirectoryEntry& entry : SW_TRY(checkpoint.directory->list(""))) {
    if (!entry.is_directory) continue;
    if (entry.name == kModelOptState) checkpoint.notes.push_back(modelopt_note(kModelOptState));
    if (!entry.name.starts_with("mp_rank_")) continue;
    for (const DirectoryEntry& file : SW_TRY(checkpoint.directory->list(entry.name))) {
      if (!file.name.starts_with("train_dataloader_")) continue;
      checkpoint.notes.push_back(
          translated("{}: states of data loaders are left out; copy them where the ranks stay the "
                     "same",
                     path_in(entry.name, file.name)));
      return {};
    }
  }
  return {};
}

void tell_optimizer_beside(Checkpoint& checkpoint) {
  const std::string path = whole_path(checkpoint.location.path);
  const std::string model = path.substr(path.find_last_of('/') + 1);
  const std::optional<std::string> above = folder_above(path);
  if (!model.starts_with(kAccelerateModel) || !above) return;
  const std::string optimizer = fmt::format("optimizer_{}", model.substr(kAccelerateModel.size()));
  const auto beside = open_directory(*above);
  if (!beside || !(*beside)->exists(path_in(optimizer, ".metadata"))) return;
  checkpoint.notes.push_back(translated(
      "{} beside {} holds the optimizer, which is left out: it is a checkpoint of its own",
      optimizer, model));
  checkpoint.unread_optimizer_file = optimizer;
}

}  // namespace shardwright
