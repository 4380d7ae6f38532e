// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardwright/plan.h"
#include "tensor/chunk_index.h"

namespace shardwright {

/// What is done in one go: a target tensor or a part of it, together with the tensors that repeat
/// it, or an object that is copied.
struct WorkUnit {
  std::uint32_t index = 0;   ///< of the target tensor, or of the object
  std::int64_t ordinal = 0;  ///< of the part; kObject for an object

  static constexpr std::int64_t kObject = -1;
  [[nodiscard]] bool is_object() const { return ordinal == kObject; }
};

/// Bytes of one payload that a piece writes: those of a chunk, or of a copied object.
struct PieceRun {
  std::uint32_t index = 0;  ///< of the target tensor, or of the object
  std::uint32_t chunk = 0;  ///< of the tensor; kObject for an object
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  static constexpr std::uint32_t kObject = 0xffffffff;
  [[nodiscard]] bool is_object() const { return chunk == kObject; }
  /// Where it stands in a piece.
  [[nodiscard]] bool is_before(const PieceRun& other) const;
};

/// A plan's work cut into pieces that can be done by any process, in any order, each whole. Pieces
/// follow where the source's bytes lie, so that who takes neighbours reads few files and reads them
/// forwards. Depends on the plan and `most_bytes` alone, so that all who share out a plan, or go on
/// with it, mean the same by a number. Borrows the plan. Safe for concurrent use.
class PieceList {
 public:
  /// `most_bytes`: of a piece, if what can't be divided is not more.
  PieceList(const Plan& plan, std::uint64_t most_bytes);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  [[nodiscard]] std::span<const WorkUnit> units(std::uint32_t piece) const;
  /// What writing a piece writes, without the framing of archives.
  [[nodiscard]] std::uint64_t bytes(std::uint32_t piece) const { return bytes_[piece]; }
  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }
  /// The source file that a piece begins to read in; a number behind all for one that reads none.
  [[nodiscard]] std::uint32_t source_file(std::uint32_t piece) const;
  /// All that a piece writes, by index, chunk and offset; no two overlap.
  [[nodiscard]] std::vector<PieceRun> runs(std::uint32_t piece) const;

  /// The region of its target tensor that a unit is: contiguous in row-major order, so that it
  /// meets every chunk in one contiguous run of that chunk.
  [[nodiscard]] Box box(const WorkUnit& unit) const;
  /// The chunks of a tensor that meet a region, in order of origin.
  void find_chunks(std::uint32_t tensor, const Box& region,
                   std::vector<std::uint32_t>& chunks) const {
    chunk_indexes_[tensor].find(region, chunks);
  }
  /// Whether a tensor is written with the one in front of it, see repeated_tensors().
  [[nodiscard]] bool is_repeated(std::size_t tensor) const {
    return tensor < is_repeated_.size() && is_repeated_[tensor];
  }

 private:
  void add_units(std::uint32_t tensor);
  [[nodiscard]] std::uint64_t unit_bytes(const WorkUnit& unit) const;

  const Plan* plan_;
  std::int64_t most_bytes_;
  std::vector<bool> is_repeated_;
  std::vector<ChunkIndex> chunk_indexes_;
  std::vector<WorkUnit> units_;
  std::vector<std::size_t> ends_;  // of each piece, in units_
  std::vector<std::uint64_t> bytes_;
  std::uint64_t total_bytes_ = 0;
};

/// The part of a chunk's row-major payload that `region`, a contiguous one of the tensor, is.
[[nodiscard]] ByteRange run_in_chunk(const Box& chunk, const Box& region, int element_bytes);

/// How large pieces are where nobody says: some dozens of a small conversion, 256 MiB of a large
/// one.
[[nodiscard]] std::uint64_t default_piece_bytes(std::uint64_t total_bytes);

}  // namespace shardwright
