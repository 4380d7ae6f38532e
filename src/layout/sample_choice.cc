// SPDX-License-Identifier: Apache-2.0
#include "layout/sample_choice.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardwright {

std::vector<std::string> choose_samples(const std::vector<NumberedFolder>& models,
                                        std::size_t most) {
  if (models.empty()) return {};
  std::vector<const NumberedFolder*> sorted;
  for (const NumberedFolder& folder : models) sorted.push_back(&folder);
  std::ranges::sort(sorted, {}, [](const NumberedFolder* folder) { return folder->numbers; });
  std::set<const NumberedFolder*> chosen = {sorted.front(), sorted.back()};
  if (sorted.size() <= std::min(kFewFolders, most)) chosen.insert(sorted.begin(), sorted.end());
  for (std::size_t place = 1; place < 4; ++place) {
    std::map<std::int64_t, const NumberedFolder*> first_of;
    for (const NumberedFolder* folder : sorted) {
      if (place < folder->numbers.size()) first_of.try_emplace(folder->numbers[place], folder);
    }
    for (const auto& [number, folder] : first_of) chosen.insert(folder);
  }
  std::vector<const NumberedFolder*> ordered(chosen.begin(), chosen.end());
  std::ranges::sort(ordered, {}, [](const NumberedFolder* folder) { return folder->numbers; });
  std::vector<std::string> names;
  const std::size_t count = std::min(most, ordered.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = count == 1 ? 0 : i * (ordered.size() - 1) / (count - 1);
    names.push_back(ordered[at]->name);
  }
  return names;
}

}  // namespace shardwright
