// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// Bytes [offset, offset + length) of one file.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// How the bytes of a chunk lie in its range.
enum class Encoding : std::uint8_t {
  kRaw,        ///< the range is the elements themselves
  kTorchItem,  ///< the range is a whole torch.save archive of one tensor; not located yet
  kZstdItem,   ///< the same, compressed
};

/// One stored piece of a tensor.
struct Chunk {
  Box box;
  std::uint32_t file = 0;  ///< index into Catalog::files
  ByteRange range;
  /// Element strides of the stored piece; empty means row-major. Before its item is located: 0 of a
  /// first axis that the item itself has not.
  Dims strides;
};

/// The chunks of one tensor, packed: a checkpoint has millions, so a chunk costs 2·axes+3 words;
/// and mostly one to a tensor, so a list is one allocation.
class ChunkList {
 public:
  explicit ChunkList(int axes = 0) : axes_(axes) {}
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] int axes() const { return axes_; }
  [[nodiscard]] Chunk operator[](std::size_t index) const;
  [[nodiscard]] Box box(std::size_t index) const;
  /// Of the box, without making it: whoever sorts chunks looks at each a dozen times.
  [[nodiscard]] std::span<const std::int64_t> origin(std::size_t index) const {
    return std::span(words_).subspan(index * words_per_chunk(), static_cast<std::size_t>(axes_));
  }
  [[nodiscard]] std::uint32_t file(std::size_t index) const {
    return static_cast<std::uint32_t>(words_[place_of(index) + 2]);
  }
  [[nodiscard]] ByteRange range(std::size_t index) const {
    const std::size_t place = place_of(index);
    return {static_cast<std::uint64_t>(words_[place]),
            static_cast<std::uint64_t>(words_[place + 1])};
  }
  /// REQUIRES: chunk.box has axes() axes.
  void push_back(const Chunk& chunk);
  void set_location(std::size_t index, std::uint32_t file, ByteRange range);
  /// REQUIRES: strides has axes() axes, or is empty for row-major.
  void set_strides(std::size_t index, const Dims& strides);
  void reserve(std::size_t count);
  void shrink_to_fit();

 private:
  [[nodiscard]] std::size_t words_per_chunk() const {
    return static_cast<std::size_t>(2 * axes_) + 3;
  }
  /// Of the words that say where a chunk is stored.
  [[nodiscard]] std::size_t place_of(std::size_t index) const {
    return index * words_per_chunk() + static_cast<std::size_t>(2 * axes_);
  }

  int axes_;
  std::uint32_t count_ = 0;
  std::vector<std::int64_t> words_;    // per chunk: origin, shape, offset, length, file
  std::vector<std::int64_t> strides_;  // empty until a chunk needs them; then axes_ per chunk
};

/// One of the names that a tensor is stored under, where it has several: the copy of a tensor rank
/// (`NAME.__tp_replica_1`), what a rank keeps of it (`__shadow_3__NAME`), or NAME itself.
struct StoredCopy {
  std::string name;
  std::optional<std::int64_t> replica;  ///< the tensor rank that the name tells, if it does
  bool is_shadow = false;               ///< may have only some of the tensor's chunks
  std::size_t chunks = 0;
};

/// A tensor and where its pieces are.
struct StoredTensor {
  TensorDesc desc;
  ChunkList chunks;
  Encoding encoding = Encoding::kRaw;
  /// What the chunks are of, in their order; empty for a tensor that is stored under its own name
  /// only.
  std::vector<StoredCopy> copies = {};
};

/// An opaque entry (a pickled object): its bytes are carried, never interpreted.
struct StoredObject {
  std::string name;
  std::uint32_t file = 0;
  ByteRange range;
};

/// A piece of a tensor to be written, and the global rank that would write it.
struct OwnedChunk {
  Box box;
  std::int64_t owner = 0;
};

/// Bytes known when planning: headers, metadata files, carried artifacts.
struct Literal {
  std::uint32_t file = 0;  ///< index into Catalog::files
  std::uint64_t offset = 0;
  std::string bytes;
};

/// The layers of each kind that a module has a stack of its own for, in order, by the module's
/// name: `self_attention_global` holds 5 and 11.
using KindStacks = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// What a checkpoint holds and where each byte lies, whatever its format.
struct Catalog {
  std::vector<std::string> files;  ///< relative to the checkpoint's directory
  std::vector<StoredTensor> tensors;
  std::vector<StoredObject> objects;
  KindStacks kind_stacks = {};  ///< where a stack does not hold all layers
};

/// Name, dtype and shape of each tensor, in order.
[[nodiscard]] std::vector<TensorDesc> descs_of(const Catalog& catalog);

/// Whether two chunks may hold the same region.
enum class Replicas : std::uint8_t { kAllowed, kForbidden };

/// Checks that every element of the tensor is stored exactly once: chunks lie inside the shape
/// (kOutOfBounds), do not overlap (kOverlap) and leave nothing out (kHole). Where replicas are
/// allowed, identical boxes count once. The message names the first offending box.
[[nodiscard]] Status check_coverage(const StoredTensor& tensor,
                                    Replicas replicas = Replicas::kAllowed);

}  // namespace shardwright
