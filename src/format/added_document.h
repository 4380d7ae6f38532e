// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Adds a file of another folder to a checkpoint's artifacts, under `name`. Errors: those of
/// looking at it.
[[nodiscard]] Status add_document(const std::shared_ptr<const Directory>& folder,
                                  const std::string& path, std::string name,
                                  Checkpoint& checkpoint);

/// Adds what describes the model in a folder of that directory, a tokenizer among it, less the file
/// called `without`. Errors: those of listing and of add_document; entries that can't be read are
/// told to `defects`.
[[nodiscard]] Status add_descriptions(const std::shared_ptr<const Directory>& directory,
                                      std::string_view folder, std::string_view without,
                                      Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright
