// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "io/source_files.h"
#include "io/watched_directory.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A chunk of a catalog.
struct ChunkNumber {
  std::uint32_t tensor = 0;
  std::uint32_t chunk = 0;
};

/// Reads chunks of a torch.distributed.checkpoint whole, and opens no file but theirs, each once.
/// Records are compared with their CRC-32s. For one thread at a time.
class ChunkReader {
 public:
  /// Opens the files of `chunks` in a local folder and finds where in them the elements lie.
  /// `catalog`: what `.metadata` says. Errors, with tensor and file: those of locate_items.
  [[nodiscard]] static Result<ChunkReader> open(std::string_view folder, const Catalog& catalog,
                                                std::span<const ChunkNumber> chunks);

  /// Fills `bytes` with the elements of a chunk, the how manieth of those given to open, row-major.
  /// Errors, with tensor and file: kOutOfBounds for another size of `bytes`; those of reading.
  [[nodiscard]] Status read(std::size_t chunk, std::span<std::byte> bytes);

  /// After the last one: reads what is left of records that were begun, so that they are compared
  /// too, and looks whether a file was changed. Errors: kPayloadDamaged, kSourceChanged.
  [[nodiscard]] Status finish();

  [[nodiscard]] std::uint64_t opens() const { return files_->opens(); }

 private:
  ChunkReader(std::unique_ptr<WatchedDirectory> directory, Catalog catalog);

  std::unique_ptr<WatchedDirectory> directory_;  // outlives the files in it
  std::unique_ptr<SourceFiles> files_;
  Catalog located_;                    // a tensor for each chunk
  std::vector<std::uint32_t> stored_;  // the file of each, before any was decoded
};

}  // namespace shardwright
