// SPDX-License-Identifier: Apache-2.0
#include "convert/drafting.h"

#include <fmt/format.h>

#include "canonical/families.h"
#include "state/document_names.h"

namespace shardwright {

void Drafting::replace_config(std::string text) {
  result.source.hf_config = std::move(text);
  std::erase_if(result.source.artifacts,
                [](const auto& artifact) { return artifact.first == kHfConfigFile; });
  parts.files.push_back(
      {fmt::format("{}{}", traits().hf_folder, kHfConfigFile), result.source.hf_config});
}

Status load_mappings(Drafting& drafting) {
  if (!drafting.mappings.empty()) return {};
  drafting.mappings = SW_TRY(load_mappings(drafting.request(), drafting.source()));
  return {};
}

}  // namespace shardwright
