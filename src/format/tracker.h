// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

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

/// DeepSpeed's `latest` and `latest_universal`, the first that names a folder that is there; where
/// none does, the first that names a save under DeepSpeed's own name for it. Errors: those of
/// reading.
[[nodiscard]] Result<std::optional<Tracker>> read_deepspeed_tracker(const Folder& folder);

}  // namespace shardwright
