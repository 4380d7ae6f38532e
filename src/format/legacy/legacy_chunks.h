// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "codec/torch_archive.h"
#include "io/source_files.h"
#include "layout/legacy_parts.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A piece of a rank's tensor: which file has it, and where it belongs.
struct LegacyPiece {
  std::uint32_t file = 0;
  const LocatedTensor& place;
  const LegacyPart& part;
  bool is_whole = false;  ///< the tensor has no other part
};

/// Puts the tensors of ranks together: chunks of global ones, in a catalog.
class LegacyChunks {
 public:
  /// Borrows both. What is read of `files` later is compared with the CRC-32s of its records.
  LegacyChunks(Catalog& catalog, SourceFiles& files) : catalog_(catalog), files_(files) {}

  /// Adds a chunk to the tensor `prefix` + the part's canonical name, of the dtype that is stored.
  /// Errors: kShapeMismatch where ranks disagree about the tensor, kUnsupportedFormat for strides
  /// within a tensor of several parts.
  [[nodiscard]] Status add(std::string_view prefix, const LegacyPiece& piece);

 private:
  [[nodiscard]] Status add_chunk(const TensorDesc& desc, const Chunk& chunk);

  Catalog& catalog_;
  SourceFiles& files_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace shardwright
