// SPDX-License-Identifier: Apache-2.0
#include "format/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "base/translated.h"
#include "format/files_beside.h"
#include "format/iteration_folder.h"
#include "format/states_apart.h"
#include "format/weight_names.h"
#include "format/weightless_iteration.h"

namespace shardwright {
namespace {

constexpr int kDeepest = 5;
constexpr int kMostFolders = 100;  // that are looked into
constexpr std::string_view kDeepSpeedPrefix = "global_step";
constexpr int kDeepestBelow = 4;  // folders whose names say nothing, one in another

using Names = std::vector<std::string>;

/// A folder further down, and why it is the one.
struct Step {
  std::string folder;
  std::string reason;
  std::string note = {};
};

// A later save than the one that the tracker names, beside it or among Megatron's non-persistent
// ones; empty if there is none. A save that ended may have died before its tracker was written, and
// a run may have been set back on purpose.
std::string newer_save(const Folder& folder, std::string_view named) {
  constexpr std::array<std::string_view, 3> kPrefixes = {"iter_", "global_step_", kDeepSpeedPrefix};
  constexpr std::string_view kNonPersistent = "non_persistent";
  for (const std::string_view prefix : kPrefixes) {
    const auto number = number_after(named, prefix);
    if (!number) continue;
    const DirectoryEntry* latest = latest_folder(folder.entries(), prefix);
    if (latest != nullptr && number_after(latest->name, prefix) > number) return latest->name;
    if (folder.folder(kNonPersistent) == nullptr) continue;
    const auto others = folder.list(kNonPersistent);
    if (!others) continue;  // nothing is read of it
    latest = latest_folder(*others, prefix);
    if (latest != nullptr && number_after(latest->name, prefix) > number) {
      return fmt::format("{}/{}", kNonPersistent, latest->name);
    }
  }
  return {};
}

// The folder that a tracker names.
std::vector<Step> named_steps(const Folder& folder, const std::optional<Tracker>& tracker) {
  if (!tracker || !tracker->is_there) return {};
  Step step{tracker->folder, fmt::format("{} names {}", tracker->file, tracker->folder)};
  const std::string newer = newer_save(folder, tracker->folder);
  if (!newer.empty()) {
    step.note = translated(
        "{} is taken, which {} names; {} is a later save: to use that one, give "
        "its folder",
        tracker->folder, tracker->file, newer);
  }
  return {std::move(step)};
}

// DeepSpeed itself takes none of several saves where no `latest` names one.
void tell_choice(const Folder& folder, Step& step) {
  if (!number_after(step.folder, kDeepSpeedPrefix) || folder.has_file("latest")) return;
  const auto saves = std::ranges::count_if(folder.entries(), [](const DirectoryEntry& entry) {
    return entry.is_directory && number_after(entry.name, kDeepSpeedPrefix);
  });
  if (saves < 2) return;
  step.note = translated("no file 'latest' says which of {} saves is meant: {} is taken, the last",
                         saves, step.folder);
}

// The newest of each kind: saves of different software that lie side by side are equally good.
std::vector<Step> newest_steps(const Folder& folder) {
  constexpr std::array<std::string_view, 8> kPrefixes = {
      "iter_", "step_", "step-", "step", "global_step_", kDeepSpeedPrefix, "checkpoint-", "epoch_"};
  std::vector<Step> steps;
  const auto add = [&](const DirectoryEntry* newest) {
    if (newest == nullptr) return;
    steps.push_back({newest->name, translated("{} is the latest folder", newest->name)});
  };
  for (const std::string_view prefix : kPrefixes) {
    add(latest_folder(folder.entries(), prefix));
    if (prefix == kDeepSpeedPrefix && !steps.empty()) tell_choice(folder, steps.back());
  }
  add(latest_step_of_epochs(folder.entries()));
  return steps;
}

std::vector<Step> known_steps(const Folder& folder) {
  constexpr std::array<std::string_view, 13> kNames = {
      "release",    "sharded", "actor",       "critic",  "policy",     "trainer",    "dist_ckpt",
      "dist_model", "model",   "huggingface", "hf_ckpt", "checkpoint", "checkpoints"};
  std::vector<Step> steps;
  const auto add = [&](std::string_view name) {
    const DirectoryEntry* entry = folder.folder(name);
    if (entry == nullptr || entry->problem) return;
    steps.push_back({std::string(name), translated("the data lie in {}", name)});
  };
  // NeMo 2's, and those of NeMo-RL.
  for (const std::string_view beside : {"context", "optimizer", "tokenizer"}) {
    if (folder.folder(beside) == nullptr) continue;
    add("weights");
    break;
  }
  for (const std::string_view name : kNames) add(name);
  for (const DirectoryEntry& entry : folder.entries()) {
    if (entry.name.starts_with(kAccelerateModel)) add(entry.name);
  }
  return steps;
}

// Of a pipeline of diffusers what was trained to remove noise: its other parts are models of other
// kinds, or no models.
std::vector<Step> pipeline_steps(const Folder& folder) {
  constexpr std::array<std::string_view, 3> kDenoisers = {"transformer", "transformer_2", "unet"};
  std::vector<Step> steps;
  if (!folder.has_file(kPipelineFile)) return steps;
  Names others;
  for (const DirectoryEntry& entry : folder.entries()) {
    const bool is_denoiser = std::ranges::find(kDenoisers, entry.name) != kDenoisers.end();
    if (!entry.is_directory || entry.problem || entry.name.starts_with('.')) continue;
    if (!is_denoiser) {
      others.push_back(entry.name);
      continue;
    }
    steps.push_back({entry.name, translated("{} describes a pipeline of diffusers, whose model is "
                                            "in {}",
                                            kPipelineFile, entry.name)});
  }
  if (others.empty()) return steps;
  for (Step& step : steps) {
    step.note = translated(
        "of the pipeline this is {} alone; {} are left where they are: to use the model, put it "
        "back beside them as {}",
        step.folder, name_list(others), step.folder);
  }
  return steps;
}

// ms-swift's model into which the adapters of a save were merged.
Step merged_beside(const std::string& save) {
  Step step{save + std::string(kMergedEnd), {}};
  step.reason =
      translated("{} is the model into which the adapters of {} were merged", step.folder, save);
  step.note = step.reason;
  return step;
}

bool shows_no_weights(const Detection& found) {
  return found.candidates.empty() &&
         (found.siblings.empty() || is_weightless_iteration(*found.siblings.front().sibling));
}

// The folder on the way to a checkpoint that is being looked into.
struct Place {
  std::string path;
  Names steps;
  Names reasons;
  Names notes;

  [[nodiscard]] Place below(const Step& step) const {
    Place place = *this;
    place.path = path_in(path, step.folder);
    place.steps.push_back(step.folder);
    place.reasons.push_back(step.reason);
    if (!step.note.empty()) place.notes.push_back(step.note);
    return place;
  }
};

// Torch files that may be whole models, by their names; where the trainer itself has a name for its
// last one (Composer, Lightning), that one.
std::vector<Candidate> files_of_models(const std::string& folder,
                                       const std::vector<DirectoryEntry>& entries) {
  constexpr std::array<std::string_view, 3> kEndings = {".ckpt", ".pt", ".pth"};
  constexpr std::array<std::string_view, 2> kNewest = {"latest-rank0.pt", "last.ckpt"};
  std::vector<Candidate> found;
  for (const DirectoryEntry& entry : entries) {
    const std::string& name = entry.name;
    const bool is_of_rank = matches_sign(name, "*rank_#*");
    if (entry.is_directory || entry.problem || is_of_rank || !ends_as_any(name, kEndings)) continue;
    const auto reads = [&](const SourceFormat* format) { return format->reads_file(name); };
    const auto format = std::ranges::find_if(source_formats(), reads);
    if (format == source_formats().end()) continue;
    Candidate candidate;
    candidate.format = *format;
    candidate.folder = path_in(folder, name);
    if (std::ranges::find(kNewest, name) != kNewest.end()) return {std::move(candidate)};
    found.push_back(std::move(candidate));
  }
  return found;
}

class Detector {
 public:
  Detector(const Directory& directory, std::string_view format, std::string_view lone_file)
      : directory_(directory), wanted_(find_source_format(format)), lone_file_(lone_file) {}

  Result<Detection> explore(const Place& place) {
    ++looked_;
    const Folder folder = SW_TRY(Folder::open(directory_, place.path));
    std::vector<Candidate> remains;
    std::vector<Candidate> sure = SW_TRY(recognise(folder, place, remains));
    Detection found;
    found.candidates = wanted_ != nullptr ? wanted_of(sure, remains) : std::move(sure);
    if (!found.candidates.empty()) return found;
    found = SW_TRY(descend(folder, place));
    if (!found.candidates.empty() || wanted_ != nullptr) return found;
    if (found.siblings.empty()) found.siblings = recognise_siblings(folder.entries());
    // NeMo 1 has folders of ranks too.
    if (found.siblings.empty()) found.candidates = std::move(remains);
    return found;
  }

  // What lies in folders that no rule leads to, level by level, and where nothing does, in files
  // of any name. Only to be told: one that can't be read is passed over.
  std::vector<Candidate> below(const std::string& end) {
    std::vector<Candidate> found;
    std::vector<Candidate> files;
    Names level = {end};
    for (int depth = 0; depth < kDeepestBelow && !level.empty(); ++depth) {
      Names next;
      std::vector<Candidate> files_here;
      for (const std::string& folder : level) {
        const auto entries = directory_.list(folder);
        has_seen_all_ &= entries.has_value();
        if (!entries) continue;
        std::ranges::move(files_of_models(folder, *entries), std::back_inserter(files_here));
        if (!explore_within(folder, *entries, next, found)) return found;
      }
      if (files.empty()) files = std::move(files_here);
      level = std::move(next);
    }
    return found.empty() ? files : found;
  }

  /// Whether below() has passed nothing over, but what lies too deep.
  [[nodiscard]] bool has_seen_all() const { return has_seen_all_; }

 private:
  // Whether it was not too much to look into. Within a checkpoint there is none of its own.
  bool explore_within(const std::string& folder, const std::vector<DirectoryEntry>& entries,
                      Names& next, std::vector<Candidate>& found) {
    for (const DirectoryEntry& entry : entries) {
      const bool is_hidden = entry.name.starts_with('.');
      if (!entry.is_directory || is_hidden) continue;
      has_seen_all_ &= !entry.problem && looked_ < 2 * kMostFolders;
      if (entry.problem) continue;
      if (looked_ >= 2 * kMostFolders) return false;
      const std::string inside = path_in(folder, entry.name);
      auto there = explore({inside, {}, {}, {}});
      has_seen_all_ &= there.has_value();
      if (!there || there->candidates.empty()) next.push_back(inside);
      if (there) std::ranges::move(there->candidates, std::back_inserter(found));
    }
    return true;
  }

  // What is surely here; and what only counts where nothing else does.
  Result<std::vector<Candidate>> recognise(const Folder& folder, const Place& place,
                                           std::vector<Candidate>& remains) const {
    std::vector<Candidate> sure;
    for (const SourceFormat* format : source_formats()) {
      auto recognition = SW_TRY(recognise_as(*format, folder));
      if (!recognition) continue;
      const bool is_sure = recognition->strength == Recognition::Strength::kSure;
      (is_sure ? sure : remains)
          .push_back({format, place.path, place.steps, place.reasons, std::move(recognition->facts),
                      place.notes});
    }
    const std::size_t meant = sure.empty() ? remains.size() : sure.size();
    for (Candidate& candidate : sure) candidate.needs_name = meant > 1;
    for (Candidate& candidate : remains) candidate.needs_name = meant > 1 || !sure.empty();
    return sure;
  }

  Result<std::optional<Recognition>> recognise_as(const SourceFormat& format,
                                                  const Folder& folder) const {
    if (lone_file_.empty()) return format.recognise(folder);
    if (!format.reads_file(lone_file_)) return std::optional<Recognition>();
    return Recognition{Recognition::Strength::kSure,
                       {translated("{} was given by itself", lone_file_)}};
  }

  [[nodiscard]] std::vector<Candidate> wanted_of(const std::vector<Candidate>& sure,
                                                 const std::vector<Candidate>& remains) const {
    std::vector<Candidate> exact;
    std::vector<Candidate> possible;
    for (const auto* list : {&sure, &remains}) {
      for (const Candidate& candidate : *list) {
        if (candidate.format == wanted_) exact.push_back(candidate);
        const SourceFormat& found = *candidate.format;
        const bool is_dialect = found.may_lie_in(found.traits());
        if (!is_dialect && wanted_->may_lie_in(found.traits())) possible.push_back(candidate);
      }
    }
    return exact.empty() ? possible : exact;
  }

  Result<Detection> descend(const Folder& folder, const Place& place) {
    Detection nothing;
    nothing.end = place.path;
    nothing.steps = place.steps;
    if (place.steps.size() >= kDeepest || !lone_file_.empty()) return nothing;
    std::optional<Tracker> tracker = SW_TRY(read_tracker(folder));
    if (!tracker || !tracker->is_there) {
      std::optional<Tracker> other = SW_TRY(read_deepspeed_tracker(folder));
      if (other && (!tracker || other->is_there)) tracker = std::move(other);
    }
    for (const auto& ways : {named_steps(folder, tracker), newest_steps(folder),
                             pipeline_steps(folder), known_steps(folder)}) {
      if (ways.empty()) continue;
      Detection found = SW_TRY(follow(folder, ways, place));
      // What was to be found may lie beside the newest save.
      if (found.candidates.empty() && wanted_ != nullptr) continue;
      const bool is_broken = tracker && !tracker->is_there;
      if (is_broken || !found.tracker) {
        found.tracker = std::move(tracker);
        found.run = place.path;
      }
      return found;
    }
    nothing.tracker = std::move(tracker);
    nothing.run = place.path;
    nothing.siblings = SW_TRY(siblings_in_modalities(folder));
    if (nothing.siblings.empty()) nothing.siblings = SW_TRY(siblings_in_number(folder));
    return nothing;
  }

  // All ways are equally good. Where none leads to a checkpoint, the first says what is there.
  Result<Detection> follow(const Folder& folder, const std::vector<Step>& ways,
                           const Place& place) {
    std::optional<Detection> first;
    for (const Step& way : ways) {
      const DirectoryEntry* entry = folder.folder(way.folder);
      if (entry->problem) return std::unexpected(*entry->problem);
      if (looked_ >= kMostFolders && first) break;
      Detection found = SW_TRY(explore(place.below(way)));
      if (shows_no_weights(found)) {
        const Step merged = merged_beside(way.folder);
        if (folder.folder(merged.folder) != nullptr) {
          Detection other = SW_TRY(explore(place.below(merged)));
          if (!other.candidates.empty()) found = std::move(other);
        }
      }
      if (!first || (first->candidates.empty() && !found.candidates.empty())) {
        first = std::move(found);
      } else {
        std::ranges::move(found.candidates, std::back_inserter(first->candidates));
      }
    }
    return *std::move(first);
  }

  // Orbax numbers its steps and says no more. What can be read is not looked for there: a bare
  // number may be a model's size as well.
  static Result<std::vector<SiblingMatch>> siblings_in_number(const Folder& folder) {
    const DirectoryEntry* newest = latest_folder(folder.entries(), "");
    if (newest == nullptr || newest->problem) return std::vector<SiblingMatch>();
    auto siblings = recognise_siblings(SW_TRY(folder.list(newest->name)));
    for (SiblingMatch& match : siblings) match.entry = path_in(newest->name, match.entry);
    return siblings;
  }

  // Cornstarch has a folder for each modality, and its signs two levels further down.
  static Result<std::vector<SiblingMatch>> siblings_in_modalities(const Folder& folder) {
    constexpr int kMostModalities = 8;
    int looked = 0;
    for (const DirectoryEntry& entry : folder.entries()) {
      if (!entry.is_directory || entry.problem || ++looked > kMostModalities) continue;
      for (const char* part : {"/module", "/projector"}) {
        if (!folder.exists(entry.name + part)) continue;
        auto siblings = recognise_siblings(SW_TRY(folder.list(entry.name + part)));
        if (!siblings.empty()) return siblings;
      }
    }
    return std::vector<SiblingMatch>();
  }

  const Directory& directory_;
  const SourceFormat* wanted_;
  std::string_view lone_file_;
  int looked_ = 0;
  bool has_seen_all_ = true;
};

}  // namespace

Result<Detection> detect(const Directory& directory, std::string_view format,
                         std::string_view lone_file) {
  Detector detector(directory, format, lone_file);
  Detection found = SW_TRY(detector.explore({}));
  found.candidates = without_states_apart(directory, std::move(found.candidates));
  const bool is_nothing = found.candidates.empty() && found.siblings.empty() && !found.tracker;
  if (is_nothing && format.empty() && lone_file.empty()) {
    found.below = detector.below(found.end);
    found.has_all_below = detector.has_seen_all();
  }
  return found;
}

}  // namespace shardwright
