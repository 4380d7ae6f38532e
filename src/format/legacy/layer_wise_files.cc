// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/layer_wise_files.h"

#include <algorithm>
#include <charconv>

#include "base/fail.h"
#include "codec/torch_file.h"
#include "format/legacy/refuse_states.h"
#include "format/legacy/torch_optimizer.h"
#include "io/source_files.h"
#include "layout/layer_wise_share.h"
#include "state/param_group.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

constexpr std::string_view kBegin = "layer_wise_optimizer_";
constexpr std::string_view kEnd = ".pt";

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

// Where a group's own parameters keep no steps, it says them: the same in every file.
Status take_steps(std::span<const pickle::Value> groups, std::optional<std::int64_t>& step) {
  for (const pickle::Value group : groups) {
    const std::optional<std::int64_t> said = step_of_group(group);
    if (said && step && *said != *step) {
      return refuse_states("found step {}, expected {} as of the other parameters", *said, *step);
    }
    if (said) step = said;
  }
  return {};
}

}  // namespace

std::optional<std::size_t> layer_wise_number(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  return is_number ? std::optional(number) : std::nullopt;
}

Result<LayerWiseFiles> LayerWiseFiles::find(Checkpoint& checkpoint, const LegacyRanks& ranks) {
  LayerWiseFiles found(checkpoint, ranks);
  for (std::size_t i = 0; i < ranks.files().size(); ++i) SW_TRY(found.add_folder(i));
  return found;
}

Status LayerWiseFiles::add_folder(std::size_t index) {
  // A copy: file_number() makes the list of files grow.
  const std::string folder(folder_of(checkpoint_->catalog.files[ranks_->files()[index].file]));
  for (const DirectoryEntry& entry : SW_TRY(checkpoint_->directory->list(folder))) {
    const std::optional<std::size_t> number = layer_wise_number(entry.name);
    if (!number) continue;
    const LegacyStage stage = SW_TRY(ranks_->stage_of(index, 0));
    const std::uint32_t file = file_number(*checkpoint_, folder + "/" + entry.name);
    files_.push_back({*number, index, stage.rank, file, {}});
  }
  return {};
}

std::string_view LayerWiseFiles::path_of(const File& file) const {
  return checkpoint_->catalog.files[file.file];
}

// Those of all data-parallel ranks of one tensor and pipeline rank, in their order.
std::vector<LayerWiseFiles::File*> LayerWiseFiles::files_of(const LegacyRank& rank) {
  std::vector<File*> files;
  for (File& file : files_) {
    if (file.rank.tensor == rank.tensor && file.rank.pipeline == rank.pipeline) {
      files.push_back(&file);
    }
  }
  std::ranges::sort(files, {}, [](const File* file) { return file->data_rank; });
  return files;
}

Status LayerWiseFiles::check_complete(std::span<File* const> files, std::size_t index) const {
  const LegacyRankFile& rank = ranks_->files()[index];
  if (const auto size = number_of(rank.contents.arguments, {"context_parallel_size"});
      size.value_or(1) > 1) {
    return fail(Code::kOptimizerUnsupported,
                "optimizer: the run's context parallel size is {}, and ranks that differ in it "
                "alone write their states into one layer_wise_optimizer_N.pt, one over the other; "
                "convert without them (--optimizer drop), or save the run as torch_dist",
                *size);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i]->data_rank == i) continue;
    if (i > 0 && files[i]->data_rank == files[i - 1]->data_rank) {
      return refuse_states("found the states of data-parallel rank {} in {} and in {}",
                           files[i]->data_rank, path_of(*files[i - 1]), path_of(*files[i]));
    }
    return refuse_states(
        "found no layer_wise_optimizer_{}.pt, but one of data-parallel rank {} ({})", i,
        files[i]->data_rank, path_of(*files[i]));
  }
  const auto ranks = number_of(rank.contents.arguments, {"data_parallel_size"});
  if (ranks && *ranks != static_cast<std::int64_t>(files.size())) {
    return refuse_states("found layer_wise_optimizer_N.pt of {} data-parallel ranks, expected {}",
                         files.size(), *ranks);
  }
  const bool has_own =
      std::ranges::any_of(files, [&](const File* file) { return file->index == index; });
  if (has_own) return {};
  return refuse_states("found no layer_wise_optimizer_N.pt beside the model, as other ranks have");
}

Status LayerWiseFiles::read_groups(File& file) {
  if (file.groups) return {};
  const auto readable = SW_TRY(checkpoint_->files->get(file.file));
  const TorchFile torch = SW_TRY(TorchFile::open(*readable));
  file.groups = SW_TRY(TorchOptimizer::open(*readable, torch, torch.root())).groups();
  return {};
}

// The groups of the whole optimizer: what `files` say they have, of experts only those beside rank
// file `index`.
Result<std::vector<OptimizerGroup>> LayerWiseFiles::joined_groups(std::span<File* const> files,
                                                                  std::size_t index) {
  std::vector<OptimizerGroup> joined;
  for (File* file : files) {
    if (Status status = read_groups(*file); !status) {
      return std::unexpected(std::move(status).error().within(path_of(*file)));
    }
    const std::vector<OptimizerGroup>& groups = *file->groups;
    if (file == files.front()) {
      joined = groups;
      for (OptimizerGroup& group : joined) group.parameters = 0;
    }
    const bool are_alike = std::ranges::equal(
        groups, joined,
        [](const OptimizerGroup& a, const OptimizerGroup& b) { return a.is_like(b); });
    if (!are_alike) {
      return refuse_states("found other parameter groups in {} than in {}", path_of(*file),
                           path_of(*files.front()));
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].is_expert && file->index != index) continue;
      joined[g].parameters += groups[g].parameters;
    }
  }
  return joined;
}

Result<std::vector<LayerWiseFiles::States>> LayerWiseFiles::read(
    std::size_t index, std::span<const RankParameter> parameters) {
  const LegacyStage stage = SW_TRY(ranks_->stage_of(index, 0));
  const std::vector<File*> files = files_of(stage.rank);
  SW_TRY(check_complete(files, index));
  const std::vector<OptimizerGroup> joined = SW_TRY(joined_groups(files, index));
  std::vector<std::int64_t> elements;
  for (const RankParameter& parameter : parameters) elements.push_back(parameter.buffered.elements);

  const auto model = SW_TRY(checkpoint_->files->get(ranks_->files()[index].file));
  const TorchFile state = SW_TRY(TorchFile::open(*model));
  LayerWiseRank rank;
  rank.ranks = files.size();
  rank.expert_ranks = static_cast<std::size_t>(
      std::ranges::count(files, index, [](const File* file) { return file->index; }));
  std::vector<States> found;
  for (const File* file : files) {
    if (file->index != index) continue;
    rank.number = file->data_rank;
    const auto readable = SW_TRY(checkpoint_->files->get(file->file));
    const auto read_file = [&]() -> Result<RankOptimizer> {
      const TorchFile torch = SW_TRY(TorchFile::open(*readable));
      const auto optimizer = SW_TRY(TorchOptimizer::open(*readable, torch, torch.root()));
      const GroupRule told = read_group_rule(state.root().find("args"), optimizer.stored_groups());
      std::vector<LayerWiseGroup> groups;
      for (auto& share : SW_TRY(parameters_of_groups(descs_of(parameters), joined, told))) {
        groups.push_back({std::move(share), joined[groups.size()].is_expert});
      }
      const auto share = layer_wise_share(groups, elements, rank);
      for (std::size_t g = 0; g < share.size(); ++g) {
        if (share[g].size() == optimizer.groups()[g].parameters) continue;
        return refuse_states(
            "found {} parameters in group {}, expected {} as of data-parallel rank {} of {}",
            optimizer.groups()[g].parameters, g, share[g].size(), rank.number, rank.ranks);
      }
      RankOptimizer states = SW_TRY(optimizer.read(parameters, share));
      SW_TRY(take_steps(optimizer.stored_groups(), states.step));
      return states;
    };
    Result<RankOptimizer> states = read_file();
    if (!states) return std::unexpected(std::move(states).error().within(path_of(*file)));
    found.push_back({file->file, *std::move(states)});
    ++rank.expert_number;
  }
  return found;
}

}  // namespace shardwright
