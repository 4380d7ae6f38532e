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

Result<ZeroFiles> list_zero_files(std::span<const DirectoryEntry> entries) {
  ZeroFiles files;
  ByRank whole;  // of a model that is not cut, by model-parallel rank
  for (const DirectoryEntry& entry : entries) {
    const auto name = parse_zero_file(entry.name);
    if (!name || entry.is_directory) continue;
    if (entry.problem) return std::unexpected(*entry.problem);
    if (name->model_rank > 0) {
      return fail(Code::kUnsupportedFormat,
                  "{} is of a second model-parallel rank, and no rule says how these tensors are "
                  "cut; DeepSpeed's ds_to_universal.py puts them together where the run recorded "
                  "it, and its universal checkpoint is read",
                  entry.name);
    }
    if (name->holds == ZeroFileName::Holds::kOptimizer) {
      SW_TRY(add_file(*name->data_rank, entry.name, files.optimizer));
    } else {
      ByRank& models = name->data_rank ? files.model : whole;
      SW_TRY(add_file(name->data_rank.value_or(0), entry.name, models));
    }
  }
  SW_TRY(check_ranks(files.optimizer));
  SW_TRY(check_ranks(files.model));
  if (files.model.empty()) files.model = std::move(whole);
  if (!files.model.empty()) return files;
  return fail(Code::kZeroLayout,
              "found {} without mp_rank_00_model_states.pt, which has the parameters' names and "
              "shapes; copy it too",
              files.optimizer.empty() ? "no model" : files.optimizer.begin()->second);
}

}  // namespace shardwright
