// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Finds the payloads inside the torch archives of a DCP catalog: afterwards every tensor has
/// Encoding::kRaw. Reads the archives' heads and directories, file by file in the order in which
/// they lie. Error: kChunkMismatch when an archive holds another dtype or shape than the metadata
/// says (torch 2.12 and 2.13 write such files for strided shards), and those of the archive reader.
[[nodiscard]] Status locate_items(Catalog& catalog, SourceFiles& files);

/// The same, with what is wrong told to `defects`. Chunks that a collection has lost, before or
/// here, stay unlocated.
[[nodiscard]] Status locate_items(Catalog& catalog, SourceFiles& files, Defects& defects);

}  // namespace shardwright
