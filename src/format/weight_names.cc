// SPDX-License-Identifier: Apache-2.0
#include "format/weight_names.h"

#include <algorithm>

#include "model/config.h"

namespace shardwright {

std::optional<std::string_view> index_file_in(const Directory& directory) {
  const auto found = std::ranges::find_if(
      kHfIndexFiles, [&](std::string_view name) { return directory.exists(std::string(name)); });
  return found == kHfIndexFiles.end() ? std::nullopt : std::optional(*found);
}

std::string_view index_file_of(std::string_view stem) {
  return stem == kDiffusersStem ? kDiffusersIndexFile : kHfIndexFile;
}

std::string_view weight_stem_of(std::string_view config_json) {
  if (config_json.empty()) return kModelStem;
  const Result<HfConfig> config = read_hf_config(config_json);
  return config && config->is_of_diffusers ? kDiffusersStem : kModelStem;
}

}  // namespace shardwright
