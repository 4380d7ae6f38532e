// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The files of an HF model that are not its weights (config, tokenizer, code, licences), in order;
/// behind them those of the folders that go along with it, by their paths
/// (`additional_chat_templates/tool_use.jinja`, `1_Pooling/config.json`).
/// Names that can't be read are told to `defects` and left out.
[[nodiscard]] Result<std::vector<DirectoryEntry>> list_hf_artifacts(const Directory& directory,
                                                                    std::string_view folder,
                                                                    Defects& defects);

}  // namespace shardwright
