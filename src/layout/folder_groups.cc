// SPDX-License-Identifier: Apache-2.0
#include "layout/folder_groups.h"

#include <algorithm>
#include <array>
#include <set>

#include "layout/rank_folder.h"

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 3> kModelFiles = {"model_optim_rng.pt", "model_rng.pt",
                                                         "model.pt"};

// What counts further is not the name of a rank.
constexpr std::int64_t kHighestRank = 1'000'000;

const ListedFile* find_file(const RankFolder& folder, std::string_view name) {
  const auto found = std::ranges::find(folder.files, name, &ListedFile::name);
  return found == folder.files.end() ? nullptr : &*found;
}

bool holds_only_dataloaders(const RankFolder& folder) {
  return !folder.files.empty() && std::ranges::all_of(folder.files, [](const ListedFile& file) {
    return file.name.starts_with("train_dataloader_dprank");
  });
}

}  // namespace

bool is_optimizer_file(std::string_view name) {
  return name == "optim.pt" || name == "distrib_optim.pt" ||
         name.starts_with("layer_wise_optimizer_");
}

std::string_view model_file_of(const RankFolder& folder) {
  for (const std::string_view name : kModelFiles) {
    if (find_file(folder, name) != nullptr) return name;
  }
  return {};
}

FolderGroups group_folders(const std::vector<RankFolder>& folders) {
  FolderGroups groups;
  for (const RankFolder& folder : folders) {
    auto numbers = parse_rank_folder(folder.name);
    if (numbers && std::ranges::max(*numbers) > kHighestRank) numbers.reset();
    const std::string_view model = model_file_of(folder);
    const auto optimizer = std::ranges::find_if(
        folder.files, [](const ListedFile& file) { return is_optimizer_file(file.name); });
    if (numbers && !model.empty()) {
      groups.models.push_back(
          {folder.name, *numbers, std::string(model), find_file(folder, model)->bytes});
    } else if (numbers && optimizer != folder.files.end()) {
      groups.optimizers.push_back({folder.name, *numbers, optimizer->name, optimizer->bytes});
    } else if (holds_only_dataloaders(folder)) {
      groups.dataloaders.push_back(folder.name);
    } else {
      groups.others.push_back(folder.name);
    }
  }
  return groups;
}

std::vector<std::size_t> arities_of(const std::vector<NumberedFolder>& folders) {
  std::set<std::size_t> arities;
  for (const NumberedFolder& folder : folders) arities.insert(folder.numbers.size());
  return {arities.begin(), arities.end()};
}

}  // namespace shardwright
