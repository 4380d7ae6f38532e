// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace shardwright {

/// What the names of torch's HuggingFaceStorageWriter
/// (`shard-00002-model-00001-of-00003.safetensors`: rank 2's parts of the tensors of file 1) can't
/// tell, as notes: which of the ranks' files are not there, for one that has no part of a file's
/// tensors writes none; and that nothing says where the tensors end. None for files of other names.
[[nodiscard]] std::vector<std::string> shard_grid_notes(std::span<const std::string> files);

}  // namespace shardwright
