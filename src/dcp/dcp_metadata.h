// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codec/pickle_audit.h"
#include "codec/pickle_token.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/error.h"
#include "shardwright/storage.h"

namespace shardwright {

/// One step of the way from a state dict's root to a value: a dict key or a list index.
using PathStep = std::variant<std::string, std::int64_t>;

/// Where a flattened name was in the nested state dict (`planner_data`).
struct PlannerPath {
  std::string name;
  std::vector<PathStep> path;
};

/// A stored item that stream extensions (zstd ...) transformed while it was written.
struct TransformedItem {
  std::uint32_t file = 0;  ///< index into Catalog::files
  std::string name;        ///< of the tensor or object
  /// As stored: applied last to first when decoding.
  std::vector<std::string> descriptors;
};

/// What a `.metadata` file says.
struct DcpMetadata {
  /// Tensors with Encoding::kTorchItem and objects, in the file's order.
  Catalog catalog;
  std::string root_class;  ///< `torch.distributed.checkpoint.metadata.Metadata`
  std::optional<std::string> version = std::nullopt;
  bool has_storage_meta = false;
  std::vector<TransformedItem> transformed;
  /// Megatron's `mcore_data`: the shape of a tensor before its flattened axes were reformulated.
  std::vector<std::pair<std::string, Dims>> original_shapes;
  std::vector<PlannerPath> planner_paths;  ///< only where asked for
  /// What a loader that obeys the pickle would do. Of what was passed over nothing is known.
  pickle::Audit audit;
  /// What is read here and torch fails on, as sentences without a subject: `has ...`.
  std::vector<std::string> torch_obstacles;
};

struct DcpMetadataOptions {
  bool planner_paths = false;
  /// Reads Megatron's `all_local_plans` too, which repeat every chunk and mean nothing here.
  bool all_parts = false;
  /// Told of chunks that leave their tensor and of entries that have no place; null: the first one
  /// is the error.
  Defects* defects = nullptr;
  pickle::Limits limits = {.bytes = std::uint64_t{4} << 30,
                           .opcodes = std::uint64_t{1} << 33,
                           .string_bytes = std::uint64_t{16} << 20,
                           .stack = std::size_t{1} << 20};
};

/// Reads the `.metadata` of torch.distributed.checkpoint, of torch 2.0 to 2.13 and of
/// Megatron-Core, without making any object that it names: what is not needed is passed over.
///
/// The file is read twice in windows of 1 MiB: first only to learn which memo slots are used again,
/// then to fill the lists. Memory is that of the result plus about two bytes per chunk.
///
/// Every chunk lies inside its tensor and has its file, offset and length; a chunk without elements
/// that was not stored is left out. Errors: kMetadataCorrupt (also for a chunk without a storage
/// entry and the reverse), kOutOfBounds, kPathEscapes, kDuplicateName, kDtypeUnsupported, kLimit,
/// and those of pickle::Tokenizer. That ranges lie inside the files is for the caller to check.
[[nodiscard]] Result<DcpMetadata> read_dcp_metadata(const ReadableFile& file,
                                                    const DcpMetadataOptions& options = {});

/// How a `.metadata` file is to be written.
struct DcpMetadataWriteOptions {
  /// `version` attribute; none loads everywhere.
  std::optional<std::string> version = std::nullopt;
  /// Where names were in the nested state dict; none: no planner data, which loads everywhere too.
  std::vector<PlannerPath> planner_paths = {};
};

/// Writes a `.metadata` that torch 2.0.1 to 2.13 and Megatron-Core load: class names that all of
/// them have, protocol 4, no StorageMeta. Every chunk of the catalog must have its
/// item's range. The same catalog gives the same bytes.
/// Errors: kInternal (a chunk names a file that the catalog lacks), kOverlap (two chunks of a
/// tensor begin at the same place and are not the same item: the format has one key for both).
[[nodiscard]] Result<std::string> encode_dcp_metadata(const Catalog& catalog,
                                                      const DcpMetadataWriteOptions& options = {});

}  // namespace shardwright
