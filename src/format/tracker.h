// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/folder.h"

namespace shardwright {

/// `latest_checkpointed_iteration.txt`, Megatron's note of the newest save, which verl and VeOmni
/// keep too; or what DeepSpeed keeps of that kind.
struct Tracker {
  std::string file;       ///< its name
  std::string text;       ///< as it stands there, at most 40 bytes
  std::string folder;     ///< the folder it means; empty where the text means none
  bool is_there = false;  ///< the folder exists and is not empty
};

/// The tracker of a run's folder, if it has one. Errors: those of reading; of a folder that it
/// names and that can't be read.
[[nodiscard]] Result<std::optional<Tracker>> read_tracker(const Folder& folder);

/// Whether a run's folder holds an iteration of this name, but nothing that says so: Megatron finds
/// no checkpoint in such a folder, and begins with random weights. Megatron-Bridge keeps a note of
/// its own.
[[nodiscard]] bool lacks_tracker(const Folder& run, std::string_view iteration);

/// DeepSpeed's `latest` and `latest_universal`, the first that names a folder that is there; where
/// none does, the first that holds one word. Errors: those of reading.
[[nodiscard]] Result<std::optional<Tracker>> read_deepspeed_tracker(const Folder& folder);

}  // namespace shardwright
