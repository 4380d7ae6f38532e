// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// What one file holds of a tensor.
struct FilePart {
  std::uint32_t tensor = 0;       ///< in the catalog
  std::uint32_t first_chunk = 0;  ///< of the tensor, in the order of their bytes
  std::uint32_t first_run = 0;    ///< in FileParts::runs
  std::uint32_t run_count = 0;
  std::uint64_t bytes = 0;
};

/// What one file holds of the tensors that it shares with others.
struct FileParts {
  std::uint32_t file = 0;       ///< in the catalog
  std::vector<FilePart> parts;  ///< by tensor
  std::vector<ByteRange> runs;  ///< of one part after the other: in order, none touches the next

  /// Where the bytes of a part are.
  [[nodiscard]] std::span<const ByteRange> runs_of(const FilePart& part) const {
    return std::span(runs).subspan(part.first_run, part.run_count);
  }
};

/// The files of a catalog that hold other boxes of a tensor than another file does. Only a few
/// bytes for each chunk are kept; the parts of a file are made when they are asked for.
///
/// Safe for reading from several threads.
class SharedFiles {
 public:
  /// REQUIRES: `catalog` outlives this.
  explicit SharedFiles(const Catalog& catalog);

  /// How many files share tensors with others.
  [[nodiscard]] std::size_t size() const { return begins_.size() - 1; }
  /// REQUIRES: index < size(). The files come in the catalog's order.
  [[nodiscard]] FileParts operator[](std::size_t index) const;

 private:
  struct Held {
    std::uint32_t file = 0;
    std::uint32_t tensor = 0;
    std::uint32_t chunk = 0;
  };

  const Catalog& catalog_;
  std::vector<Held> held_;           // by file, tensor and place
  std::vector<std::size_t> begins_;  // of each file in it, and its end
};

}  // namespace shardwright
