// SPDX-License-Identifier: Apache-2.0
#include "format/survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/iteration_folder.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kSmallFileBytes = std::uint64_t{1} << 20;
constexpr int kDeepest = 5;

using Entries = std::vector<DirectoryEntry>;

bool has_folder(const Entries& entries, std::string_view name) {
  return std::ranges::any_of(
      entries, [&](const DirectoryEntry& e) { return e.is_directory && e.name == name; });
}

bool has_file(const Entries& entries, std::string_view name) {
  return std::ranges::any_of(
      entries, [&](const DirectoryEntry& e) { return !e.is_directory && e.name == name; });
}

bool is_rank_folder(const DirectoryEntry& entry) {
  return entry.is_directory && entry.name.starts_with("mp_rank_");
}

bool is_weights_file(const DirectoryEntry& entry) {
  return !entry.is_directory && entry.name.ends_with(".safetensors") &&
         !entry.name.starts_with("adapter_model");
}

// Where the data begin; everything else is on the way.
bool holds_data(const Entries& entries) {
  return has_file(entries, ".metadata") || has_file(entries, "__0.metadata") ||
         has_file(entries, "metadata.json") || has_file(entries, "common.pt") ||
         std::ranges::any_of(entries, is_rank_folder) ||
         std::ranges::any_of(entries, is_weights_file) ||
         has_file(entries, "model.safetensors.index.json");
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

class Surveyor {
 public:
  explicit Surveyor(const Directory& directory) : directory_(directory) {}

  Result<Survey> survey() {
    for (int depth = 0; depth < kDeepest; ++depth) {
      survey_.entries = SW_TRY(directory_.list(survey_.data));
      remember_writers();
      remember_leftovers();
      if (holds_data(survey_.entries)) break;
      const std::string next = SW_TRY(next_folder());
      if (next.empty()) break;
      // What shows a layout may lie above the data: DeepSpeed's tag folders hold numbers only.
      if (survey_.siblings.empty()) survey_.siblings = recognise_siblings(survey_.entries);
      survey_.steps.push_back(next);
      survey_.data = joined(survey_.data, next);
    }
    SW_TRY(look_around());
    return std::move(survey_);
  }

 private:
  void remember_writers() {
    for (SiblingMatch& match : recognise_writers(survey_.entries)) {
      survey_.writers.push_back(std::move(match));
    }
  }

  void remember_leftovers() {
    for (const DirectoryEntry& entry : survey_.entries) {
      if (!entry.is_directory || (entry.name != "tmp" && entry.name != "dones")) continue;
      survey_.leftovers.push_back(joined(survey_.data, entry.name));
    }
  }

  Result<std::string> next_folder() {
    const Entries& entries = survey_.entries;
    if (has_file(entries, kTrackerName)) {
      SW_TRY(read_tracker());
      if (survey_.tracker->is_there) return survey_.tracker->folder;
    }
    for (const std::string_view prefix : {"iter_", "step_"}) {
      if (const DirectoryEntry* folder = latest_folder(entries, prefix)) return folder->name;
    }
    if (has_folder(entries, "release")) return std::string("release");
    if (has_folder(entries, "weights") && has_folder(entries, "context")) {
      return std::string("weights");
    }
    if (has_file(entries, "latest")) {
      const std::string text =
          SW_TRY(read_whole(directory_, joined(survey_.data, "latest"), kSmallFileBytes));
      const std::string tag(tracker_word(text));
      if (has_folder(entries, tag)) return tag;
    }
    for (const std::string_view prefix : {"global_step_", "global_step", "checkpoint-"}) {
      if (const DirectoryEntry* folder = latest_folder(entries, prefix)) return folder->name;
    }
    for (const char* name : {"actor", "dist_ckpt", "huggingface", "checkpoints", "hf_ckpt"}) {
      if (has_folder(entries, name)) return std::string(name);
    }
    return std::string();
  }

  Status read_tracker() {
    const std::string path = joined(survey_.data, std::string(kTrackerName));
    const std::string text = SW_TRY(read_whole(directory_, path, kSmallFileBytes));
    const std::string_view word = tracker_word(text);
    TrackerSurvey tracker;
    tracker.text = word.substr(0, 40);
    tracker.folder = iteration_folder(word);
    // verl and VeOmni keep the number and name the folder otherwise.
    const std::string step = "global_step_" + std::string(word);
    if (!has_folder(survey_.entries, tracker.folder) && has_folder(survey_.entries, step)) {
      tracker.folder = step;
    }
    if (!tracker.folder.empty() && has_folder(survey_.entries, tracker.folder)) {
      const Entries inner = SW_TRY(directory_.list(joined(survey_.data, tracker.folder)));
      tracker.is_there = !inner.empty();
    }
    survey_.tracker = std::move(tracker);
    return {};
  }

  Status look_around() {
    for (const DirectoryEntry& entry : survey_.entries) {
      if (!entry.is_directory) continue;
      const std::string path = joined(survey_.data, entry.name);
      if (is_rank_folder(entry)) {
        survey_.ranks.push_back({entry.name, SW_TRY(directory_.list(path))});
      }
    }
    if (has_file(survey_.entries, "metadata.json")) SW_TRY(read_backend());
    std::vector<SiblingMatch> here = recognise_siblings(survey_.entries);
    if (!here.empty()) survey_.siblings = std::move(here);
    if (survey_.backend.empty() && survey_.siblings.empty()) SW_TRY(look_for_zarr());
    if (!holds_data(survey_.entries) && survey_.siblings.empty()) SW_TRY(look_into_modalities());
    return {};
  }

  Status read_backend() {
    const std::string text =
        SW_TRY(read_whole(directory_, joined(survey_.data, "metadata.json"), kSmallFileBytes));
    for (const char* name : {"torch_dist", "zarr", "fsdp_dtensor"}) {
      if (text.find(fmt::format("\"{}\"", name)) != std::string::npos) survey_.backend = name;
    }
    return {};
  }

  // Zarr keeps one folder per tensor; one look is enough.
  Status look_for_zarr() {
    const auto folder = std::ranges::find_if(survey_.entries, &DirectoryEntry::is_directory);
    if (folder == survey_.entries.end() || is_rank_folder(*folder)) return {};
    survey_.holds_zarr = directory_.exists(joined(survey_.data, folder->name) + "/.zarray");
    return {};
  }

  // Cornstarch has a folder for each modality, and the signs two levels further down.
  Status look_into_modalities() {
    constexpr int kMostFolders = 8;
    int looked = 0;
    for (const DirectoryEntry& entry : survey_.entries) {
      if (!entry.is_directory || ++looked > kMostFolders) continue;
      for (const char* part : {"/module", "/projector"}) {
        const std::string path = joined(survey_.data, entry.name) + part;
        if (!directory_.exists(path)) continue;
        survey_.siblings = recognise_siblings(SW_TRY(directory_.list(path)));
        if (!survey_.siblings.empty()) return {};
      }
    }
    return {};
  }

  const Directory& directory_;
  Survey survey_;
};

}  // namespace

bool Survey::has(std::string_view name) const { return has_file(entries, name); }

bool Survey::has_safetensors() const {
  return std::ranges::any_of(entries, is_weights_file) || has("model.safetensors.index.json");
}

Result<Survey> survey_directory(const Directory& directory) { return Surveyor(directory).survey(); }

}  // namespace shardwright
