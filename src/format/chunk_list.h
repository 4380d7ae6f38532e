// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "format/folder.h"

namespace shardwright {

/// What in a folder lists the chunks that torch.distributed.checkpoint stored there, as a fact:
/// `.metadata`, or the first rank's own; nullopt if nothing does.
[[nodiscard]] std::optional<std::string> chunk_list_of(const Folder& folder);

/// Whether a folder's files are those of Megatron-Core's torch_dist, but for the `metadata.json`
/// that says so: nobody else puts `common.pt` beside `.metadata`.
[[nodiscard]] bool lacks_metadata_json(const Folder& folder);

}  // namespace shardwright
