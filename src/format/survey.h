// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/detect.h"

namespace shardwright {

/// A folder and what a listing of it shows.
struct FolderListing {
  std::string name;
  std::vector<DirectoryEntry> entries;
};

/// What lies about on the way to a checkpoint and beside its data. No file of tensors is opened.
struct Survey {
  std::string data;                ///< folder with the data, relative to the path; "" for itself
  std::vector<std::string> steps;  ///< the names of the folders on the way, outermost first
  std::vector<DirectoryEntry> entries;  ///< of the data's folder
  std::vector<FolderListing> ranks;     ///< its `mp_rank_*` folders, of legacy
  std::vector<std::string> leftovers;   ///< `tmp` and `dones` folders, also on the way
  std::vector<SiblingMatch> writers;    ///< of all folders on the way
};

/// Looks about on the way to the first candidate, or to where the way ends. Errors: those of
/// list().
[[nodiscard]] Result<Survey> survey_directory(const Directory& directory,
                                              const Detection& detection);

}  // namespace shardwright
