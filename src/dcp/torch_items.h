// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether an item, before it is located, is a tensor of a safetensors file that lies inside a
/// `.distcp` file (torch's SerializationFormat.SAFETENSORS): the chunk's range then begins where
/// that file does and has the payload's length, which is less than any archive of it has.
[[nodiscard]] bool is_safetensors_item(const StoredTensor& tensor, std::size_t chunk);

/// Finds the payloads inside the items of a DCP catalog, which are torch archives, safetensors
/// files that many tensors share, or either behind zstd: afterwards every tensor has
/// Encoding::kRaw. Reads the items' heads and directories, file by file in the order in which they
/// lie; what zstd hides is decoded into a temporary file, a further one of `catalog` and `files`.
///
/// torch 2.12 and 2.13 describe uneven strided shards wrong. Where the items' own shapes leave one
/// reading, the boxes become what was stored, and the result says so, a note for each tensor.
/// Error: kChunkMismatch, with tensor, chunk and file, for any other item whose dtype or shape is
/// not what the metadata says, and those of the readers of archives and headers.
[[nodiscard]] Result<std::vector<std::string>> locate_items(Catalog& catalog, SourceFiles& files);

/// The same, with what is wrong told to `defects`. Chunks that a collection has lost, before or
/// here, stay unlocated.
[[nodiscard]] Result<std::vector<std::string>> locate_items(Catalog& catalog, SourceFiles& files,
                                                            Defects& defects);

}  // namespace shardwright
