// SPDX-License-Identifier: Apache-2.0
#include "format/tracker.h"

#include "format/iteration_folder.h"

namespace shardwright {

Result<std::optional<Tracker>> read_tracker(const Folder& folder) {
  if (!folder.has_file(kTrackerName)) return std::optional<Tracker>();
  const std::string text = SW_TRY(folder.read(kTrackerName));
  const std::string_view word = tracker_word(text);
  Tracker tracker;
  tracker.text = word.substr(0, 40);
  tracker.folder = iteration_folder(word);
  // verl and VeOmni keep the number and name the folder otherwise.
  const std::string step = "global_step_" + std::string(word);
  if (folder.folder(tracker.folder) == nullptr && folder.folder(step) != nullptr) {
    tracker.folder = step;
  }
  const DirectoryEntry* named = folder.folder(tracker.folder);
  if (tracker.folder.empty() || named == nullptr) return tracker;
  if (named->problem) return std::unexpected(*named->problem);
  tracker.is_there = !SW_TRY(folder.list(tracker.folder)).empty();
  return tracker;
}

}  // namespace shardwright
