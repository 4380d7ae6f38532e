// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/sibling.h"
#include "shardwright/storage.h"

namespace shardwright {

/// A folder and what a listing of it shows.
struct FolderListing {
  std::string name;
  std::vector<DirectoryEntry> entries;
};

/// `latest_checkpointed_iteration.txt`, Megatron's note of the newest save.
struct TrackerSurvey {
  std::string text;       ///< as it stands there, at most 40 bytes
  std::string folder;     ///< the folder it means; empty where the text means none
  bool is_there = false;  ///< the folder exists and is not empty
};

/// What the names under a path show: where the data are and which signs lie about. No file of
/// tensors is opened.
struct Survey {
  std::string data;                ///< folder with the data, relative to the path; "" for itself
  std::vector<std::string> steps;  ///< the names of the folders on the way, outermost first
  std::optional<TrackerSurvey> tracker;
  std::vector<DirectoryEntry> entries;  ///< of the data's folder
  std::vector<FolderListing> ranks;     ///< its `mp_rank_*` folders
  std::vector<std::string> leftovers;   ///< `tmp` and `dones` folders, also on the way
  std::string backend;                  ///< what metadata.json names, if it is there
  bool holds_zarr = false;              ///< a folder of it has a `.zarray`
  std::vector<SiblingMatch> siblings;   ///< of the data's folder, or of one on the way
  std::vector<SiblingMatch> writers;    ///< of all folders on the way

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool has_safetensors() const;
};

/// Follows trackers and well-known folders down to the data. Errors are those of list(); a broken
/// tracker is none.
[[nodiscard]] Result<Survey> survey_directory(const Directory& directory);

}  // namespace shardwright
