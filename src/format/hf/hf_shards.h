// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "codec/safetensors_header.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Where the tensors of one safetensors file begin within the whole ones, by name. torch's
/// HuggingFaceStorageWriter says so under DCP_SHARDING_INFO in the header of each rank's file.
using ShardOffsets = std::map<std::string, Dims, std::less<>>;

/// nullopt where the header says nothing of shards. Error: kJsonCorrupt, and kMetadataCorrupt for
/// a tensor without an offset of its own number of axes.
[[nodiscard]] Result<std::optional<ShardOffsets>> read_shard_offsets(
    const SafetensorsHeader& header, std::string_view file);

/// Makes one tensor of those that are shards of it: the shape is the least one that holds them all.
/// A missing shard is a hole, or goes unnoticed where it is the last one of every tensor.
/// `offsets`: per tensor of the catalog. Error: kMetadataCorrupt for shards of different dtypes or
/// numbers of axes.
[[nodiscard]] Status join_shards(const std::vector<Dims>& offsets, Catalog& catalog);

/// torch consolidates tensors of no axes to zero without a word. Where the shards are still there
/// (`sharded/`), compares. Error: kReplicasDiffer, with the value's place.
[[nodiscard]] Status check_consolidated_scalars(const Directory& directory, const Catalog& catalog,
                                                SourceFiles& files);

}  // namespace shardwright
