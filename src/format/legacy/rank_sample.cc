// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/rank_sample.h"

#include <utility>

#include "state/recorded_run.h"

namespace shardwright {

RankFolder rank_folder(std::string name, std::span<const DirectoryEntry> entries) {
  RankFolder folder{std::move(name), {}};
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory) folder.files.push_back({entry.name, entry.size_bytes});
  }
  return folder;
}

RankSample rank_sample(std::string folder, const LegacyFile& contents) {
  RankSample sample;
  sample.folder = std::move(folder);
  sample.run = recorded_run(contents.arguments);
  sample.iteration = contents.iteration;
  for (const LegacyModel& model : contents.models) {
    auto& tensors = sample.models.emplace_back();
    for (const LegacyTensor& tensor : model.tensors) {
      tensors.push_back({tensor.name, tensor.place.shape});
    }
  }
  return sample;
}

}  // namespace shardwright
