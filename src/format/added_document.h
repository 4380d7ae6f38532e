// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Adds a file of another folder to a checkpoint's artifacts, under `name`. Errors: those of
/// looking at it.
[[nodiscard]] Status add_document(const std::shared_ptr<const Directory>& folder,
                                  const std::string& path, std::string name,
                                  Checkpoint& checkpoint);

}  // namespace shardwright
