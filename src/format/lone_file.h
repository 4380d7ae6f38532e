// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// Whether a path that the user gave is a file which can stand for a checkpoint, as some format
/// reads files of its name, or a link to one.
[[nodiscard]] bool is_lone_file(const std::string& path);

/// Whether such a file is an archive of a whole folder: there is nothing to be seen of the file
/// itself.
[[nodiscard]] bool is_lone_archive(const std::string& path);

/// A checkpoint of one file: of its folder only what describes a model (config.json,
/// the tokenizer) is there besides, no other weights, no index and no folder. Errors: those of
/// opening the file and its folder.
[[nodiscard]] Result<std::unique_ptr<Directory>> open_lone_file(const std::string& path);

}  // namespace shardwright
