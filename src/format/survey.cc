// SPDX-License-Identifier: Apache-2.0
#include "format/survey.h"

#include "format/folder.h"
#include "format/legacy/source.h"

namespace shardwright {
namespace {

using Entries = std::vector<DirectoryEntry>;

bool is_rank_folder(const DirectoryEntry& entry) {
  return (entry.is_directory || entry.problem) && entry.name.starts_with("mp_rank_");
}

class Surveyor {
 public:
  explicit Surveyor(const Directory& directory) : directory_(directory) {}

  Result<Survey> survey(const std::vector<std::string>& steps, bool is_of_ranks) {
    SW_TRY(look_around());
    for (const std::string& step : steps) {
      survey_.steps.push_back(step);
      survey_.data = path_in(survey_.data, step);
      SW_TRY(look_around());
    }
    if (is_of_ranks) SW_TRY(list_ranks());
    return std::move(survey_);
  }

 private:
  Status look_around() {
    survey_.entries = SW_TRY(directory_.list(survey_.data));
    remember_writers();
    remember_leftovers();
    return {};
  }

  void remember_writers() {
    for (SiblingMatch& match : recognise_writers(survey_.entries)) {
      survey_.writers.push_back(std::move(match));
    }
  }

  void remember_leftovers() {
    for (const DirectoryEntry& entry : survey_.entries) {
      if (!entry.is_directory || (entry.name != "tmp" && entry.name != "dones")) continue;
      survey_.leftovers.push_back(path_in(survey_.data, entry.name));
    }
  }

  Status list_ranks() {
    for (const DirectoryEntry& entry : survey_.entries) {
      if (!is_rank_folder(entry)) continue;
      if (entry.problem) return std::unexpected(*entry.problem);
      survey_.ranks.push_back(
          {entry.name, SW_TRY(directory_.list(path_in(survey_.data, entry.name)))});
    }
    return {};
  }

  const Directory& directory_;
  Survey survey_;
};

}  // namespace

Result<Survey> survey_directory(const Directory& directory, const Detection& detection) {
  if (detection.candidates.empty()) return Surveyor(directory).survey(detection.steps, false);
  const Candidate& meant = detection.candidates.front();
  return Surveyor(directory).survey(meant.steps, meant.format == &legacy_source());
}

}  // namespace shardwright
