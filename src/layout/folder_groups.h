// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/legacy_evidence.h"

namespace shardwright {

/// A folder with a rank's state and the numbers of its name.
struct NumberedFolder {
  std::string name;
  std::vector<std::int64_t> numbers;
  std::string file;  ///< of the model or, among the optimizer's folders, of the optimizer
  std::uint64_t bytes = 0;
};

/// The rank folders by what they hold. Only `models` says anything about a model's layout.
struct FolderGroups {
  std::vector<NumberedFolder> models;
  std::vector<NumberedFolder> optimizers;  ///< an optimizer's file and no model
  std::vector<std::string> dataloaders;    ///< states of data loaders only
  std::vector<std::string> others;         ///< no file that belongs there, or no rank's name
};

/// The name of the model's file among these, best first: `model_optim_rng.pt`, `model_rng.pt`,
/// `model.pt`; empty if there is none.
[[nodiscard]] std::string_view model_file_of(const RankFolder& folder);

/// Whether the files of a rank's folder go by this name that hold an optimizer and no model.
[[nodiscard]] bool is_optimizer_file(std::string_view name);

[[nodiscard]] FolderGroups group_folders(const std::vector<RankFolder>& folders);

/// How many numbers the names of these folders have, fewest first.
[[nodiscard]] std::vector<std::size_t> arities_of(const std::vector<NumberedFolder>& folders);

}  // namespace shardwright
