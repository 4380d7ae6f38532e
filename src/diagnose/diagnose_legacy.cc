// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_legacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/shell_path.h"
#include "diagnose/diagnose_arguments.h"
#include "diagnose/diagnose_conversion.h"
#include "format/legacy/legacy_file.h"
#include "format/legacy/padding_rows.h"
#include "format/legacy/rank_file_end.h"
#include "format/legacy/rank_sample.h"
#include "format/legacy/replica_bytes.h"
#include "format/legacy/tower_reader.h"
#include "format/refused_format.h"
#include "io/source_files.h"
#include "layout/classify_legacy.h"
#include "layout/sample_choice.h"
#include "layout/texts.h"
#include "remote/open_path.h"
#include "state/document_names.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

// A pickle of a rank takes milliseconds; with so many a thousand folders take well below a second.
constexpr std::size_t kMostSamples = 48;
// The tensor ranks of one node, and more.
constexpr std::int64_t kMostTowerRanks = 64;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;

class LegacyDiagnosis {
 public:
  LegacyDiagnosis(const Directory& directory, const Survey& survey, std::string_view path,
                  const Candidate& candidate, const DiagnoseRequest& request)
      : directory_(directory), survey_(survey), request_(request) {
    evidence_.path = shell_path(path);
    read_.traits = candidate.format->traits();
    evidence_.flag = flag_of(candidate);
    place_ = {std::string(path), std::string(candidate.format->name()),
              evidence_.path + evidence_.flag};
    evidence_.leftovers = survey.leftovers;
    evidence_.believed = request.believed;
    for (const FolderListing& listing : survey.ranks) {
      evidence_.folders.push_back(rank_folder(listing.name, listing.entries));
    }
  }

  Result<Diagnosis> diagnose() {
    const FolderGroups groups = group_folders(evidence_.folders);
    for (const std::string& name : choose_samples(groups.models, kMostSamples)) {
      SW_TRY(read_sample(name, groups));
    }
    SW_TRY(check_unread());
    LegacyVerdict verdict = classify_legacy(evidence_);
    if (verdict.question && settle(*verdict.question, groups)) verdict = classify_legacy(evidence_);
    if (SW_TRY(read_stages(verdict.diagnosis, groups))) verdict = classify_legacy(evidence_);
    if (read_padding(verdict.diagnosis, groups)) verdict = classify_legacy(evidence_);
    if (SW_TRY(read_towers(verdict.diagnosis, groups))) verdict = classify_legacy(evidence_);
    if (request_.check_replicas) {
      RankComparison report = SW_TRY(compare_ranks(
          directory_, groups.models, {verdict.diagnosis.coordinates, survey_.data, tower_sizes()}));
      evidence_.differing = std::move(report.differing);
      evidence_.repeated = std::move(report.repeated);
      evidence_.bytes_compared += report.bytes;
      verdict = classify_legacy(evidence_);
    }
    if (!writer_.empty()) {
      verdict.diagnosis.evidence.push_back(phrase("args.writer", {{"writer", writer_}}));
    }
    add_contradictions(verdict.diagnosis);
    add_refusal(verdict, groups.models.size());
    return std::move(verdict.diagnosis);
  }

 private:
  [[nodiscard]] std::string path_of(const std::string& folder, const std::string& file) const {
    const std::string inner = folder + "/" + file;
    return survey_.data.empty() ? inner : survey_.data + "/" + inner;
  }

  [[nodiscard]] RankFile rank_file(const std::string& folder, const FolderGroups& groups) const {
    const auto found = std::ranges::find(groups.models, folder, &NumberedFolder::name);
    return {folder, path_of(folder, found->file)};
  }

  // A file that cannot be read is a finding: the others still say what the folder is.
  Status add_unreadable(std::string file, const Error& error) {
    if (Defects::is_outage(error)) return std::unexpected(error);
    evidence_.unreadable.push_back({std::move(file), error.text()});
    return {};
  }

  Status read_sample(const std::string& folder, const FolderGroups& groups) {
    const RankFile rank = rank_file(folder, groups);
    const auto contents = [&]() -> Result<LegacyFile> {
      const auto file = SW_TRY(directory_.open(rank.path));
      return read_legacy_file(*file, LegacyDetail::kNames);
    }();
    if (!contents) {
      const std::string name = rank.path.substr(rank.path.rfind('/') + 1);
      return add_unreadable(folder + "/" + name, contents.error());
    }
    evidence_.samples.push_back(rank_sample(folder, *contents));
    if (writer_.empty()) writer_ = writer_of(contents->arguments);
    const auto found = std::ranges::find(groups.models, folder, &NumberedFolder::name);
    read_.files.push_back({found->numbers, 0, *std::move(contents)});
    return {};
  }

  // The files that nobody reads here, of models and optimizers: that one is cut off, or was copied
  // twice, shows where it ends, which costs an open and a hundred bytes.
  Status check_unread() {
    std::set<std::string, std::less<>> read;
    for (const RankSample& sample : evidence_.samples) read.insert(sample.folder);
    for (const UnreadableFile& file : evidence_.unreadable) {
      read.insert(file.path.substr(0, file.path.find('/')));
    }
    for (const RankFolder& folder : evidence_.folders) {
      for (const ListedFile& file : folder.files) {
        const bool is_model = file.name == model_file_of(folder);
        const bool was_read = is_model && read.contains(folder.name);
        if (was_read || file.bytes == 0 || !(is_model || is_optimizer_file(file.name))) continue;
        const Status end = check_rank_file_end(directory_, path_of(folder.name, file.name));
        if (end) continue;
        SW_TRY(add_unreadable(folder.name + "/" + file.name, end.error()));
      }
    }
    return {};
  }

  // Whether more files were read, so that all layers are known: of each pipeline stage of which no
  // sample is.
  Result<bool> read_stages(const Diagnosis& diagnosis, const FolderGroups& groups) {
    const auto place = static_cast<std::size_t>(std::ranges::find(diagnosis.coordinates, "pp") -
                                                diagnosis.coordinates.begin());
    if (place >= diagnosis.coordinates.size()) return false;
    std::map<std::int64_t, std::string> unread;
    for (const NumberedFolder& folder : groups.models) {
      const bool was_tried = std::ranges::any_of(
          evidence_.unreadable,
          [&](const UnreadableFile& file) { return file.path.starts_with(folder.name + "/"); });
      if (place >= folder.numbers.size() || was_tried) continue;
      unread.try_emplace(folder.numbers[place], folder.name);
    }
    for (const LegacyRankFile& file : read_.files) {
      if (place < file.numbers.size()) unread.erase(file.numbers[place]);
    }
    if (unread.empty() || unread.size() > kMostSamples) return false;
    for (const auto& [number, folder] : unread) SW_TRY(read_sample(folder, groups));
    return true;
  }

  void add_contradictions(Diagnosis& diagnosis) {
    if (evidence_.towers) read_.towers = *evidence_.towers;
    const std::string config = survey_.data.empty()
                                   ? std::string(kRunConfigFile)
                                   : fmt::format("{}/{}", survey_.data, kRunConfigFile);
    if (directory_.exists(config)) {
      read_.run_config = read_whole(directory_, config, kMostTextBytes).value_or("");
    }
    const std::size_t before = diagnosis.findings.size();
    add_legacy_contradictions(std::move(read_), diagnosis);
    was_contradicted_ = diagnosis.findings.size() > before;
    if (was_contradicted_) {
      diagnosis.next = "shardwright verify " + evidence_.path + evidence_.flag;
    }
  }

  // Planning reads the file of each rank, and those of optimizers: not of thousands, and not from a
  // server.
  void add_refusal(LegacyVerdict& verdict, std::size_t ranks) {
    Diagnosis& diagnosis = verdict.diagnosis;
    const bool is_cleared_up = verdict.conversion && !was_contradicted_;
    if (!is_cleared_up || ranks > kMostSamples || is_remote_path(place_.path)) return;
    add_refused_conversion(place_, verdict.conversion->format, verdict.conversion->sizes,
                           diagnosis);
  }

  // Whether the finding about padding rows can say more with two of them read.
  bool read_padding(const Diagnosis& diagnosis, const FolderGroups& groups) {
    const bool is_asked = std::ranges::any_of(
        diagnosis.findings, [](const Finding& finding) { return finding.code == "L17"; });
    if (!is_asked) return false;
    const auto place = std::ranges::find(diagnosis.coordinates, "pp");
    const auto stage = static_cast<std::size_t>(place - diagnosis.coordinates.begin());
    std::map<std::int64_t, RankFile> by_tensor_rank;
    for (const NumberedFolder& folder : groups.models) {
      if (place != diagnosis.coordinates.end() && folder.numbers[stage] != 0) continue;
      by_tensor_rank.emplace(folder.numbers[0], rank_file(folder.name, groups));
    }
    std::vector<RankFile> shards;
    for (auto& [rank, file] : by_tensor_rank) shards.push_back(std::move(file));
    const auto rows =
        read_padding_rows(directory_, shards, evidence_.samples.front().run.vocabulary.value_or(0));
    if (!rows) return false;  // the finding stays without
    evidence_.padding = rows->policy;
    evidence_.bytes_compared += rows->bytes;
    return true;
  }

  // Whether the model has parts that other numbers of tensor ranks may share out. One file of each
  // tensor rank is read: the first stage has all of them.
  Result<bool> read_towers(const Diagnosis& diagnosis, const FolderGroups& groups) {
    const std::int64_t size = diagnosis.sizes.tensor.value_or(1);
    const bool has_towers = std::ranges::any_of(evidence_.samples, [](const RankSample& sample) {
      return !sample.models.empty() &&
             std::ranges::any_of(sample.models.front(), [](const SampledTensor& tensor) {
               return !tower_of(tensor.name).empty();
             });
    });
    if (size < 2 || size > kMostTowerRanks || evidence_.samples.empty()) return false;
    if (!has_towers) {
      evidence_.towers.emplace();
      return true;
    }
    std::map<std::int64_t, RankFile> by_rank;
    for (const NumberedFolder& folder : groups.models) {
      by_rank.emplace(folder.numbers[0], rank_file(folder.name, groups));
    }
    LegacyAxes axes;
    axes.config.tensor = size;
    std::vector<std::string> paths;
    std::vector<LegacyRankFile> ranks;
    for (const auto& [number, file] : by_rank) {
      const auto opened = SW_TRY(directory_.open(file.path));
      auto contents = read_legacy_file(*opened, LegacyDetail::kPlaces);
      if (!contents) return false;  // told elsewhere, or by a conversion
      ranks.push_back({{number}, static_cast<std::uint32_t>(paths.size()), *std::move(contents)});
      axes.ranks.push_back({number, 0, 0, 0});
      paths.push_back(file.path);
    }
    SourceFiles files(directory_, paths, kMostTowerRanks);
    const auto towers = SW_TRY(read_tower_evidence(ranks, axes, files));
    evidence_.bytes_compared += files.bytes_read();
    const auto told = recorded_run(ranks.front().contents.arguments).encoder_tensor;
    auto settled = settle_towers(towers, told, size);
    if (settled) {
      evidence_.towers = *std::move(settled);
    } else {
      evidence_.towers_error = settled.error().text();
    }
    return true;
  }

  [[nodiscard]] TowerSizes tower_sizes() const {
    TowerSizes sizes;
    if (!evidence_.towers) return sizes;
    for (const SettledTower& tower : *evidence_.towers) sizes.emplace(tower.tower, tower.size);
    return sizes;
  }

  // Whether bytes could be compared. Where they cannot, the answer stays open.
  bool settle(const ReplicaQuestion& question, const FolderGroups& groups) {
    auto verdict = compare_replica(directory_, rank_file(question.first, groups),
                                   rank_file(question.second, groups), question.tensor);
    if (!verdict) return false;
    evidence_.bytes_compared += verdict->bytes;
    evidence_.verdict = *std::move(verdict);
    return true;
  }

  const Directory& directory_;
  const Survey& survey_;
  const DiagnoseRequest& request_;
  LegacyEvidence evidence_;
  ReadRanks read_;
  DiagnosedPlace place_;
  std::string_view writer_;
  bool was_contradicted_ = false;
};

}  // namespace

Result<Diagnosis> diagnose_legacy(const Directory& directory, const Survey& survey,
                                  std::string_view path, const Candidate& candidate,
                                  const DiagnoseRequest& request) {
  return LegacyDiagnosis(directory, survey, path, candidate, request).diagnose();
}

}  // namespace shardwright
