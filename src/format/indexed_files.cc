// SPDX-License-Identifier: Apache-2.0
#include "format/indexed_files.h"

#include <algorithm>
#include <optional>

#include "format/hf_index.h"
#include "format/weight_names.h"

namespace shardwright {

bool is_index_file(std::string_view name) {
  return std::ranges::find(kHfIndexFiles, name) != kHfIndexFiles.end();
}

std::set<std::string, std::less<>> indexed_files(const Directory& directory) {
  std::set<std::string, std::less<>> names;
  const std::optional<std::string_view> index_file = index_file_in(directory);
  if (!index_file) return names;
  if (const auto index = read_hf_index(directory, *index_file)) {
    for (const auto& [key, file] : index->files) names.insert(file);
  }
  return names;
}

}  // namespace shardwright
