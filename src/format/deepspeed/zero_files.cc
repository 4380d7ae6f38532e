// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_files.h"

#include "base/fail.h"
#include "format/deepspeed/zero_file_name.h"

namespace shardwright {
namespace {

using ByRank = std::map<std::int64_t, std::string>;

Status add_file(std::int64_t rank, const std::string& name, ByRank& files) {
  const auto [first, is_new] = files.emplace(rank, name);
  if (is_new) return {};
  return fail(Code::kZeroLayout, "found both {} and {}, of one rank; keep the files of one save",
              first->second, name);
}

Status check_ranks(const ByRank& files) {
  std::int64_t expected = 0;
  for (const auto& [rank, name] : files) {
    if (rank != expected) {
      return fail(Code::kZeroLayout, "found {} and no such file of rank {}; copy it too", name,
                  expected);
    }
    ++expected;
  }
  return {};
}

}  // namespace

Result<std::vector<ZeroFiles>> list_zero_files(std::span<const DirectoryEntry> entries) {
  std::map<std::int64_t, ZeroFiles> found;  // by model-parallel rank
  std::map<std::int64_t, ByRank> whole;     // the model of one that is not cut
  for (const DirectoryEntry& entry : entries) {
    const auto name = parse_zero_file(entry.name);
    if (!name || entry.is_directory) continue;
    if (entry.problem) return std::unexpected(*entry.problem);
    ZeroFiles& files = found[name->model_rank];
    const bool is_model = name->holds == ZeroFileName::Holds::kModel;
    ByRank& models = name->data_rank ? files.model : whole[name->model_rank];
    SW_TRY(add_file(name->data_rank.value_or(0), entry.name, is_model ? models : files.optimizer));
  }
  std::vector<ZeroFiles> ranks;
  for (auto& [rank, files] : found) {
    SW_TRY(check_ranks(files.optimizer));
    SW_TRY(check_ranks(files.model));
    if (files.model.empty()) files.model = std::move(whole[rank]);
    const bool is_next = rank == std::ssize(ranks);
    if (!is_next || files.model.empty()) {
      return fail(
          Code::kZeroLayout,
          "found {} without mp_rank_{:02}_model_states.pt, which has the parameters' names "
          "and shapes; copy it too",
          files.optimizer.empty() ? files.model.begin()->second : files.optimizer.begin()->second,
          ranks.size());
    }
    ranks.push_back(std::move(files));
  }
  if (!ranks.empty()) return ranks;
  return fail(Code::kZeroLayout, "found no mp_rank_00_model_states.pt; copy it too");
}

}  // namespace shardwright
