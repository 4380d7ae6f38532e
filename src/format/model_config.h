// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/notes.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Where ModelOpt says how weights are quantised, beside config.json.
inline constexpr std::string_view kModelOptFile = "hf_quant_config.json";

/// The text of a folder's config.json, empty where there is none; `folder` is below the directory,
/// empty or with a slash at its end. Where the config has no `quantization_config`, it gets the one
/// that older tools wrote elsewhere, and a note tells: `compression_config` of compressed-tensors
/// before 0.7, and ModelOpt's hf_quant_config.json beside it. A config.json that is no object stays
/// as it is, for whoever reads it to say so. Errors: those of reading; kJsonCorrupt for a
/// hf_quant_config.json that is none.
[[nodiscard]] Result<std::string> read_model_config(const Directory& directory,
                                                    std::string_view folder, Notes& notes);

/// The same of a folder that was named for its config.json. Error: kNotFound where it has none.
[[nodiscard]] Result<std::string> read_named_config(const Directory& folder);

}  // namespace shardwright
