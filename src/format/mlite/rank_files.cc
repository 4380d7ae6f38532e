// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/rank_files.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "format/sibling.h"

namespace shardwright {
namespace {

constexpr std::string_view kOptimizerFile = "optimizer_rank_#.pt";
constexpr std::string_view kRngFile = "rng_state_rank_#.pt";

// The number in such a name. REQUIRES: it has one.
std::int64_t rank_of_file(std::string_view name) {
  name.remove_prefix(name.find_first_of("0123456789"));
  std::int64_t rank = -1;  // more digits than any job has ranks leave it so
  std::from_chars(name.data(), name.data() + name.size(), rank);
  return rank;
}

// How many ranks wrote the files of a kind; 0 for none. Error: kLossySource for a gap.
Result<std::int64_t> ranks_that_wrote(const Checkpoint& source, std::string_view kind) {
  std::set<std::int64_t> ranks;
  for (const auto& [name, object] : source.rank_files) {
    if (matches_sign(name, kind)) ranks.insert(rank_of_file(name));
  }
  std::int64_t next = 0;
  for (const std::int64_t rank : ranks) {
    if (rank != next) {
      return fail(Code::kLossySource,
                  "found {} files like {} that end with rank {}, expected one for each rank, and "
                  "rank {} has none: it would begin anew; restore the file, or leave all of them "
                  "behind with --optimizer drop",
                  ranks.size(), kind, *ranks.rbegin(), next);
    }
    ++next;
  }
  return next;
}

std::string rank_file_names(const Checkpoint& source) {
  std::vector<std::string> names;
  for (const auto& [name, object] : source.rank_files) names.push_back(name);
  std::ranges::sort(names, natural_less);
  return name_list(names);
}

}  // namespace

bool is_mlite_rank_file(const DirectoryEntry& entry) {
  if (entry.is_directory) return false;
  return matches_sign(entry.name, kOptimizerFile) || matches_sign(entry.name, kRngFile);
}

Status take_rank_files(const ConvertRequest& request, const Checkpoint& source, TargetParts& parts,
                       std::vector<std::string>& notes) {
  if (source.rank_files.empty()) return {};
  const auto leave = [&](std::string_view why) {
    leave_rank_files(source, why, notes);
    return Status();
  };
  if (request.optimizer == OptimizerPolicy::kDrop) return leave("--optimizer drop");
  if (!request.include.empty() || !request.exclude.empty() || request.dtype) {
    return leave(
        "they are of a job with all tensors as they are stored, and --include, --exclude or "
        "--dtype makes another model");
  }
  const std::int64_t optimizers = SW_TRY(ranks_that_wrote(source, kOptimizerFile));
  const std::int64_t ranks =
      optimizers > 0 ? optimizers : SW_TRY(ranks_that_wrote(source, kRngFile));
  if (request.shards != ranks) {
    return leave(translated(
        "they belong to {} ranks, and the output to {}; --shards {} takes them along, for a job of "
        "the same layout",
        ranks, request.shards, ranks));
  }
  for (const auto& [name, object] : source.rank_files) {
    parts.artifacts.emplace_back(parts.folder + name, object);
  }
  notes.push_back(
      translated("{} go along as they are: only a job of {} ranks with the layout that saved them "
                 "may load them, for they name no parameters",
                 rank_file_names(source), ranks));
  return {};
}

void leave_rank_files(const Checkpoint& source, std::string_view why,
                      std::vector<std::string>& notes) {
  if (source.rank_files.empty()) return;
  notes.push_back(translated("{} stay behind: {}", rank_file_names(source), why));
}

}  // namespace shardwright
