// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/notes.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A config.json for a Llama of which Meta's params.json and the tensors, under Meta's names, tell.
/// `notes` say what is guessed. Errors: kJsonCorrupt; kConfigMissing for what neither tells.
[[nodiscard]] Result<std::string> config_from_params(std::string_view params,
                                                     const Catalog& catalog, Notes& notes);

}  // namespace shardwright
