// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include <algorithm>
#include <filesystem>

#include "base/fail.h"
#include "base/shell_path.h"
#include "dcp/torch_dist_layout.h"
#include "diagnose/diagnose_catalog.h"
#include "diagnose/diagnose_legacy.h"
#include "diagnose/diagnose_pickles.h"
#include "diagnose/diagnose_replicas.h"
#include "format/chunk_list.h"
#include "format/iteration_folder.h"
#include "format/lone_file.h"
#include "format/refused_format.h"
#include "format/survey.h"
#include "format/weightless_iteration.h"
#include "layout/finding_rules.h"
#include "layout/texts.h"
#include "remote/open_path.h"
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

// An iteration that ms-swift left without weights.
void add_places(const std::string& path, Diagnosis& diagnosis) {
  const PlacesOfWeights places = places_of_weights(path);
  if (places.found) {
    add_finding(diagnosis, "L26",
                {{"where", phrase("weights.found", {{"folder", *places.found}})}});
    diagnosis.next = "shardwright diagnose " + shell_path(*places.found);
    return;
  }
  const Phrase none = phrase("weights.none", {{"save", places.save}, {"merged", places.merged}});
  add_finding(diagnosis, "L26", {{"where", none}}, Severity::kError);
  diagnosis.complete = false;
  diagnosis.next = "shardwright explain L26";
}

Diagnosis of_sibling(const Sibling& sibling, const std::string& shown_by, const std::string& path) {
  Diagnosis diagnosis;
  diagnosis.format = sibling.format;
  diagnosis.confidence = Confidence::kCertain;
  const Phrase what = phrase(sibling.what);
  diagnosis.reason = phrase("shown.sibling", {{"entry", shown_by}, {"what", what}});
  const std::string quoted = shell_path(path);
  const std::string parent = shell_path(std::filesystem::path(path).parent_path().string());
  if (is_weightless_iteration(sibling)) {
    add_places(path, diagnosis);
    return diagnosis;
  }
  if (sibling.format == "legacy_rank") diagnosis.next = "shardwright diagnose " + parent;
  if (shown_by.ends_with(".nemo") || sibling.format == "non_persistent") {
    diagnosis.next = "shardwright diagnose " + shell_path(path + "/" + shown_by);
  }
  if (diagnosis.next.empty()) diagnosis.next = "shardwright explain L34";
  const Phrase reader = phrase(sibling.reader);
  add_finding(diagnosis, "L34", {{"what", what}, {"reader", reader}});
  return diagnosis;
}

Diagnosis of_nothing(const Survey& survey, const Detection& detection, const std::string& root) {
  Diagnosis diagnosis;
  diagnosis.format = "unknown";
  diagnosis.confidence = Confidence::kAmbiguous;
  diagnosis.complete = false;
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(survey.entries.size(), 4); ++i) {
    names += (names.empty() ? "" : ", ") + survey.entries[i].name;
  }
  if (names.empty()) names = "-";
  add_finding(diagnosis, "L41", {{"names", names}});
  diagnosis.reason = phrase("nothing_known", {{"names", names}});
  if (!detection.below.empty()) {
    const std::string below = first_of_text(detection.below);
    diagnosis.evidence.push_back(phrase("lies_below", {{"candidates", below}}));
  }
  // The only one may be what the training began with: the user has to say that it is meant.
  if (detection.below.size() == 1 && detection.has_all_below) {
    const std::string& only = detection.below.front().folder;
    diagnosis.next = "shardwright diagnose " + shell_path(root + "/" + only);
  }
  return diagnosis;
}

std::string last_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.find_last_of('/') + 1));
}

// Whether its iterations lie in a run's folder, which has a tracker.
bool is_of_run(const Detection& detection, const Diagnosis& diagnosis) {
  if (detection.candidates.empty()) return false;
  const SourceFormat& format = *detection.candidates.front().format;
  const SourceTraits traits = format.traits();
  return traits.needs_common_state ||
         (traits.has_rank_folders && diagnosis.format == format.name());
}

// The files beside the data that tell Megatron what they are.
Status add_missing_files(const Directory& directory, const Detection& detection,
                         Diagnosis& diagnosis) {
  if (detection.candidates.empty()) return {};
  const Candidate& candidate = detection.candidates.front();
  const SourceTraits traits = candidate.format->traits();
  if (!traits.has_chunk_list && !traits.is_of_ranks) return {};
  if (candidate.steps.size() == 1 && !detection.tracker) {
    const std::string& folder = candidate.steps.front();
    if (lacks_tracker(SW_TRY(Folder::open(directory, "")), folder)) {
      add_finding(diagnosis, "L47", {{"folder", folder}, {"word", word_of_iteration(folder)}});
    }
  }
  if (traits.needs_common_state &&
      lacks_metadata_json(SW_TRY(Folder::open(directory, candidate.folder)))) {
    add_finding(diagnosis, "L48", {{"marker", torch_dist_marker()}});
    diagnosis.complete = false;
  }
  return {};
}

void add_way(const Detection& detection, const Survey& survey, const DiagnoseRequest& request,
             Diagnosis& diagnosis) {
  if (detection.tracker && !detection.tracker->is_there) {
    const Tracker& tracker = *detection.tracker;
    const std::string folder = tracker.folder.empty() ? "-" : tracker.folder;
    add_finding(diagnosis, "L14", {{"target", "'" + tracker.text + "'"}, {"folder", folder}});
  }
  if (survey.data.empty() && is_of_run(detection, diagnosis) &&
      is_iteration_folder(last_name(request.path))) {
    add_finding(diagnosis, "L15", {});
  }
  if (!survey.steps.empty()) {
    std::string steps;
    for (const std::string& step : survey.steps) steps += (steps.empty() ? "" : "/") + step;
    diagnosis.evidence.push_back(phrase("data_in", {{"steps", steps}}));
  }
  if (!detection.candidates.empty()) {
    for (const std::string& note : detection.candidates.front().notes) {
      diagnosis.evidence.push_back({note, note});
    }
  }
  for (const SiblingMatch& writer : survey.writers) {
    if (diagnosis.format == "unknown" && detection.below.empty()) continue;
    diagnosis.evidence.push_back(phrase(
        "shown.writer", {{"entry", writer.entry}, {"writer", phrase(writer.sibling->what)}}));
  }
}

// Where several checkpoints are meant, the one that Megatron would look for first is diagnosed.
void add_others(const Detection& detection, const std::string& path, Diagnosis& diagnosis) {
  if (detection.candidates.size() < 2) return;
  diagnosis.confidence = Confidence::kAmbiguous;
  add_finding(diagnosis, "L23",
              {{"folder", path},
               {"count", detection.candidates.size()},
               {"candidates", candidates_text(detection.candidates)},
               {"chosen", std::string(detection.candidates.front().format->name())}});
}

// Of what cannot be opened it is told elsewhere why, and so it is of ranks that repeat others.
void compare_rank_files(const std::string& path, const Candidate& candidate, Diagnosis& diagnosis) {
  const bool is_told = std::ranges::any_of(diagnosis.findings, [](const Finding& finding) {
    return finding.code == "L20" || finding.code == "L40";
  });
  if (is_told) return;
  const auto checkpoint =
      open_checkpoint(path, FormatChoice{std::string(candidate.format->name())});
  if (checkpoint) add_repeated_files(*checkpoint, diagnosis);
}

Result<Diagnosis> of_candidate(const Directory& directory, const Detection& detection,
                               const Survey& survey, const std::string& path,
                               const DiagnoseRequest& request) {
  const Candidate& candidate = detection.candidates.front();
  if (const Sibling* another = candidate.format->told_as(); another != nullptr) {
    return of_sibling(*another, "metadata.json", path);
  }
  if (!candidate.format->traits().has_rank_folders) {
    return diagnose_catalog(survey, path, candidate, request);
  }
  Diagnosis diagnosis = SW_TRY(diagnose_legacy(directory, survey, path, candidate, request));
  add_folder_pickles(directory, survey.data, diagnosis);
  if (request.check_replicas) compare_rank_files(path, candidate, diagnosis);
  return diagnosis;
}

Result<Diagnosis> of_folder(const Directory& directory, const Detection& detection,
                            const Survey& survey, const std::string& root, const std::string& path,
                            const DiagnoseRequest& request) {
  if (!detection.candidates.empty()) {
    return of_candidate(directory, detection, survey, path, request);
  }
  if (detection.siblings.empty()) return of_nothing(survey, detection, root);
  const SiblingMatch& match = detection.siblings.front();
  return of_sibling(*match.sibling, match.entry, path);
}

// A format that was chosen and is not there is an error, as for every command.
Status check_choice(const Directory& directory, const Detection& detection,
                    const DiagnoseRequest& request) {
  if (request.as.empty() || !detection.candidates.empty()) return {};
  const auto chosen = only_candidate(directory, request.path, detection, {.format = request.as});
  return chosen ? Status() : std::unexpected(chosen.error());
}

Result<Diagnosis> diagnose_as(const Directory& directory, const DiagnoseRequest& request,
                              std::string_view lone_file) {
  SW_TRY(check_format_name({.format = request.as}));
  const Detection detection = SW_TRY(detect(directory, request.as, lone_file));
  SW_TRY(check_choice(directory, detection, request));
  const Survey survey = SW_TRY(survey_directory(directory, detection));
  std::string path = request.path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string root = path;
  if (!survey.data.empty()) path += "/" + survey.data;
  Diagnosis diagnosis = SW_TRY(of_folder(directory, detection, survey, root, path, request));
  diagnosis.path = path;
  add_others(detection, root, diagnosis);
  add_way(detection, survey, request, diagnosis);
  SW_TRY(add_missing_files(directory, detection, diagnosis));
  std::ranges::stable_sort(diagnosis.findings, {}, &Finding::code);
  return diagnosis;
}

}  // namespace

Result<Diagnosis> diagnose_directory(const Directory& directory, const DiagnoseRequest& request) {
  return diagnose_as(directory, request, {});
}

Result<Diagnosis> diagnose(const DiagnoseRequest& request) {
  if (is_lone_file(request.path)) {
    const auto file = SW_TRY(open_lone_file(request.path));
    return diagnose_as(*file, request, last_name(request.path));
  }
  if (is_file(request.path)) {
    const std::string name = last_name(request.path);
    const Sibling* sibling = recognise_sibling_file(name);
    if (sibling == nullptr) {
      return fail(Code::kUnknownFormat,
                  "{}: found a file, expected a checkpoint's folder; see 'shardwright inspect'",
                  request.path);
    }
    Diagnosis diagnosis = of_sibling(*sibling, name, request.path);
    diagnosis.path = request.path;
    return diagnosis;
  }
  const auto directory = SW_TRY(open_directory(request.path));
  return diagnose_directory(*directory, request);
}

}  // namespace shardwright
