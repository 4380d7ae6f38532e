// SPDX-License-Identifier: Apache-2.0
#include "format/refused_format.h"

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "format/iteration_folder.h"
#include "format/unfinished_download.h"
#include "format/weightless_iteration.h"

namespace shardwright {
namespace {

bool lie_together(const std::vector<Candidate>& candidates) {
  return std::ranges::all_of(candidates, [&](const Candidate& candidate) {
    return candidate.folder == candidates.front().folder;
  });
}

bool have_one_format(const std::vector<Candidate>& candidates) {
  return std::ranges::any_of(candidates, [&](const Candidate& candidate) {
    return std::ranges::count(candidates, candidate.format, &Candidate::format) > 1;
  });
}

std::unexpected<Error> refuse_tracker(const std::string& path, const Tracker& tracker) {
  if (tracker.folder.empty()) {
    return fail(Code::kTrackerBroken, "{}/{}: found '{}', expected an iteration or 'release'", path,
                tracker.file, printable(tracker.text));
  }
  return fail(Code::kTrackerBroken,
              "{}/{}: names {}, which is not there or empty; give the iteration's folder itself",
              path, tracker.file, printable(tracker.folder));
}

std::unexpected<Error> refuse_nothing(const Directory& directory, const std::string& path,
                                      const Detection& detection) {
  const std::string where = detection.end.empty() ? path : path + "/" + detection.end;
  if (!detection.siblings.empty()) {
    const SiblingMatch& match = detection.siblings.front();
    if (is_weightless_iteration(*match.sibling)) return refuse_weightless(where, match.entry);
    return refuse_sibling(fmt::format("{}: {}", where, match.entry), *match.sibling);
  }
  const std::vector<DirectoryEntry> entries = SW_TRY(directory.list(detection.end));
  const auto download = std::ranges::find_if(
      entries, [](const DirectoryEntry& entry) { return is_unfinished_download(entry.name); });
  if (download != entries.end()) {
    return fail(Code::kUnknownFormat,
                "{}: {} is a download that did not end, and there is no checkpoint beside it; "
                "download it again",
                where, download->name);
  }
  std::string sample;
  for (std::size_t i = 0; i < std::min<std::size_t>(entries.size(), 4); ++i) {
    sample += (i > 0 ? ", " : "") + entries[i].name;
  }
  if (!detection.below.empty()) {
    return fail(Code::kUnknownFormat, "{}: found {}; further down there is {}; give that path",
                where, sample, first_of_text(detection.below));
  }
  return fail(Code::kUnknownFormat,
              "{}: found {}, expected .metadata, *.safetensors or iter_* folders", where,
              sample.empty() ? translated("nothing") : sample);
}

}  // namespace

std::string first_of_text(const std::vector<Candidate>& candidates) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> texts;
  for (const Candidate& candidate : candidates) {
    if (texts.size() == kMost) break;
    texts.push_back(fmt::format("{} in {}", candidate.format->name(), candidate.folder));
  }
  const std::string text = name_list(texts);
  if (candidates.size() <= kMost) return text;
  return translated("{} and {} more", text, candidates.size() - kMost);
}

std::string candidates_text(const std::vector<Candidate>& candidates) {
  const bool is_one_folder = lie_together(candidates);
  std::string text;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (i > 0) text += i + 1 == candidates.size() ? translated(" and ") : ", ";
    text += candidate.format->name();
    if (!is_one_folder) {
      text += fmt::format(" in {}", candidate.folder.empty() ? "." : candidate.folder);
    }
    text += fmt::format(" ({})", candidate.facts.front());
  }
  return text;
}

std::string way_to_choose(const std::vector<Candidate>& candidates, const FormatChoice& choice) {
  if (!have_one_format(candidates) && !choice.flag.empty()) {
    return translated("name one with {} FORMAT", choice.flag);
  }
  return lie_together(candidates) ? "give a folder that holds one only"
                                  : "give the folder of one of them";
}

std::string flag_of(const Candidate& candidate) {
  return candidate.needs_name ? fmt::format(" --as {}", candidate.format->name()) : "";
}

Result<Candidate> only_candidate(const Directory& directory, const std::string& path,
                                 Detection detection, const FormatChoice& choice) {
  if (detection.tracker && !detection.tracker->is_there) {
    const std::string run = detection.run.empty() ? path : path + "/" + detection.run;
    return refuse_tracker(run, *detection.tracker);
  }
  if (detection.candidates.size() == 1) return std::move(detection.candidates.front());
  if (detection.candidates.size() > 1) {
    const std::string number =
        detection.candidates.size() == 2 ? "two" : std::to_string(detection.candidates.size());
    return fail(Code::kTwoCheckpoints, "{} holds {} checkpoints: {}; {}", path, number,
                candidates_text(detection.candidates), way_to_choose(detection.candidates, choice));
  }
  if (choice.format.empty()) return refuse_nothing(directory, path, detection);
  const Detection other = SW_TRY(detect(directory));
  if (other.candidates.empty()) return refuse_nothing(directory, path, other);
  return fail(Code::kUsage, "{} {}: {} holds {}, no {}", choice.flag, choice.format, path,
              candidates_text(other.candidates), choice.format);
}

Status check_opened(const FormatChoice& choice, const SourceFormat& found,
                    const Location& location) {
  if (choice.format.empty() || choice.format == found.name() || choice.format == location.format) {
    return {};
  }
  return fail(Code::kUsage, "{} {}: {} holds {}, no {}", choice.flag, choice.format, location.path,
              location.format, choice.format);
}

}  // namespace shardwright
