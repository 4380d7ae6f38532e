// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "shardwright/catalog.h"

namespace shardwright {

/// The pieces of one tensor and the ranks that would write them, packed as the chunks that they
/// become: a model of many experts has a million. Ranks are below 2^32.
class OwnedChunks {
 public:
  explicit OwnedChunks(int axes = 0) : chunks_(axes) {}
  OwnedChunks(int axes, std::initializer_list<OwnedChunk> chunks) : OwnedChunks(axes) {
    for (const OwnedChunk& chunk : chunks) push_back(chunk);
  }

  [[nodiscard]] std::size_t size() const { return chunks_.size(); }
  [[nodiscard]] OwnedChunk operator[](std::size_t index) const {
    return {chunks_.box(index), owner(index)};
  }
  [[nodiscard]] std::int64_t owner(std::size_t index) const { return chunks_.file(index); }
  void set_owner(std::size_t index, std::int64_t rank) {
    chunks_.set_location(index, static_cast<std::uint32_t>(rank), {});
  }
  void push_back(const OwnedChunk& chunk) {
    chunks_.push_back({chunk.box, static_cast<std::uint32_t>(chunk.owner), {}, {}});
  }
  void reserve(std::size_t count) { chunks_.reserve(count); }
  /// The boxes, each with its rank in place of a file.
  [[nodiscard]] ChunkList take() && { return std::move(chunks_); }

 private:
  ChunkList chunks_;
};

}  // namespace shardwright
