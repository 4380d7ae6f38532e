// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dcp/dcp_metadata.h"
#include "io/source_files.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The file that describes a DCP directory.
inline constexpr std::string_view kDcpMetadata = ".metadata";

/// How the names of the files end that hold the chunks.
inline constexpr std::string_view kChunkFiles = ".distcp";

/// The rank of `__N.metadata`, what torch writes for each rank that saves without talking to the
/// others; nullopt for other names.
[[nodiscard]] std::optional<std::int64_t> metadata_rank(std::string_view file_name);

/// Reads the `__N.metadata` of all ranks as one. Each rank describes what it wrote itself, so that
/// a tensor's chunks come from several files; equal ones are replicas, like any others. Errors:
/// kMetadataCorrupt for a missing rank and for ranks that disagree about a tensor's shape or
/// dtype, or about what a name is, and those of read_dcp_metadata.
[[nodiscard]] Result<DcpMetadata> read_rank_metadata(const Directory& directory,
                                                     const DcpMetadataOptions& options = {});

/// The directory's `.metadata`, or those of its ranks where it has none.
[[nodiscard]] Result<DcpMetadata> read_any_metadata(const Directory& directory,
                                                    const DcpMetadataOptions& options = {});

/// What `__N.metadata` of ranks say otherwise than the `.metadata` beside them, whose catalog this
/// is: a sentence; empty where they agree, and where there are none. torch reads `.metadata`.
[[nodiscard]] std::string contradicting_ranks(const Directory& directory, const Catalog& catalog);

/// Objects that several ranks wrote: one is kept where all are equal byte for byte. Where they
/// differ none is, and a note says so. Error: those of reading.
[[nodiscard]] Result<std::vector<std::string>> settle_rank_objects(Catalog& catalog,
                                                                   SourceFiles& files);

}  // namespace shardwright
