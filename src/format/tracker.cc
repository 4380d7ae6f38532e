// SPDX-License-Identifier: Apache-2.0
#include "format/tracker.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "format/iteration_folder.h"

namespace shardwright {
namespace {

// Megatron's, which others write too, and SkyRL's.
constexpr std::array<std::string_view, 2> kTrackers = {kTrackerName, "latest_ckpt_global_step.txt"};

bool is_one_word(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) > ' '; });
}

}  // namespace

Result<std::optional<Tracker>> read_tracker(const Folder& folder) {
  const auto file =
      std::ranges::find_if(kTrackers, [&](std::string_view name) { return folder.has_file(name); });
  if (file == kTrackers.end()) return std::optional<Tracker>();
  const std::string text = SW_TRY(folder.read(*file));
  const std::string_view word = tracker_word(text);
  Tracker tracker;
  tracker.file = *file;
  tracker.text = word.substr(0, 40);
  tracker.folder = iteration_folder(word);
  // verl, VeOmni and SkyRL keep the number and name the folder otherwise.
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

bool lacks_tracker(const Folder& run, std::string_view iteration) {
  return !word_of_iteration(iteration).empty() && run.folder(iteration) != nullptr &&
         !run.has_file(kTrackerName) && !run.has_file("latest_train_state.pt");
}

Result<std::optional<Tracker>> read_deepspeed_tracker(const Folder& folder) {
  std::optional<Tracker> broken;
  for (const std::string_view file : {"latest", "latest_universal"}) {
    if (!folder.has_file(file)) continue;
    const std::string text = SW_TRY(folder.read(file));
    const std::string tag(tracker_word(text));
    const bool is_there = !tag.empty() && folder.folder(tag) != nullptr;
    Tracker tracker{std::string(file), tag.substr(0, 40), tag, is_there};
    if (is_there) return tracker;
    // Others keep files of that name too. A save may be called anything, but for sentences.
    if (!broken && is_one_word(tag)) broken = std::move(tracker);
  }
  return broken;
}

}  // namespace shardwright
