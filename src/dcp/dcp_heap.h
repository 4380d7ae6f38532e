// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "dcp/dcp_metadata.h"
#include "shardwright/catalog.h"

namespace shardwright::dcp {

enum class Tag : std::uint8_t {
  kOpaque,
  kNone,
  kInt,         // b, c: low and high half
  kHuge,        // an int beyond int64
  kString,      // a: number in the string pool
  kEightBytes,  // b, c: low and high half of what they are as a little-endian integer
  kInt64Name,   // the arguments that make numpy's type of 64-bit integers
  kInt64Type,   // that type
  kInt64Value,  // the 2-tuple of it and a number's bytes; b, c: as of kInt
  kGlobal,      // n: Class, a: module, b: name
  kDims,        // n: axes, a: place of the integers
  kWide,        // a tuple of more integers than a tensor may have axes
  kArguments,   // the 1-tuple that holds a kDims (n, a)
  kText,        // a 1-tuple of a string; a: string
  kPath,        // a longer tuple of strings and integers; a: first of the path steps, b: how many
  kLayout,      // a: name
  kProperties,  // a TensorProperties or the tuple that is its state; a: dtype's name, b: layout,
                // n: Class of the memory format
  kFormat,      // a memory format, or what getattr makes one of; n: Class of the enum
  kNew,         // an object before its BUILD; n: Class, a: module, b: name
  kDict,        // a: record
  kList,        // a: record
  kChunk,       // n: axes, a: place of the origin, b: place of the shape
  kIndex,       // n: axes or kNoOffset, a: name, b: place of the offset, c: hint or kNone32
  kInfo,        // a: path, b: place of offset and length, c: list of transforms or kNone32
  kTensor,      // a: record of the dict with its attributes
  kRoot,        // a: record of the dict with its attributes, b: module, c: name
  kShared,      // a: number of the shared object
};

/// The classes and callables that mean something here.
enum class Class : std::uint8_t {
  kOther,
  kTensorStorage,
  kBytesStorage,
  kChunkStorage,
  kIndex,
  kProperties,
  kOldProperties,  // of torch up to 2.2, which later ones still have
  kFormat,         // the enum of memory formats
  kOldFormat,
  kGetAttr,
  kSize,
  kGetLayout,
  kOrderedDict,
  kNumpyType,
  kNumpyScalar,  // what Megatron-Core computes of sizes may be numbers of numpy
};

inline constexpr std::uint32_t kNone32 = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint8_t kNoOffset = 0xff;

/// A value of the machine. Integers that do not fit in it lie in the Heap at a place.
struct Cell {
  Tag tag = Tag::kOpaque;
  std::uint8_t n = 0;
  std::uint16_t unused = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
};
static_assert(sizeof(Cell) == 16);

/// Whether the class of a cell is one of torch's enums of memory formats.
[[nodiscard]] inline bool is_format(const Cell& cell) {
  return static_cast<Class>(cell.n) == Class::kFormat ||
         static_cast<Class>(cell.n) == Class::kOldFormat;
}

[[nodiscard]] inline Cell int_cell(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return {
      Tag::kInt, 0, 0, 0, static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
}
[[nodiscard]] inline std::int64_t int_of(const Cell& cell) {
  return static_cast<std::int64_t>((std::uint64_t{cell.c} << 32) | cell.b);
}

/// Attributes that mean something; their numbers are those of their names in the string pool.
enum Key : std::uint8_t {
  kStateDictMetadata,
  kPlannerData,
  kStorageData,
  kStorageMeta,
  kVersion,
  kMcoreData,
  kProperties,
  kSize,
  kChunks,
  kOffsets,
  kSizes,
  kFqn,
  kIndex,
  kOffset,
  kRelativePath,
  kLength,
  kTransformDescriptors,
  kDtype,
  kLayout,
  kOriginalShape,
  kKeyCount,
};

/// A dict: the values under known keys; of other pairs only how many there were.
struct DictRecord {
  static constexpr std::size_t kSlots = 10;
  std::uint8_t count = 0;
  bool pinned = false;  // the memo can reach it: lives to the end
  std::array<std::uint8_t, kSlots> keys;
  std::array<Cell, kSlots> cells;
  std::uint64_t pairs = 0;
  std::uint64_t understood = 0;   // pairs that went to the collector
  std::uint32_t stray = kNone32;  // first key whose pair did not

  [[nodiscard]] const Cell* find(Key key) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (keys[i] == key) return &cells[i];
    }
    return nullptr;
  }
};

/// A list: its chunks, or its first integers, or its strings.
struct ListRecord {
  bool pinned = false;
  bool mixed = false;  // something else was in it, or chunks of different axis counts
  ChunkList chunks;
  std::vector<std::uint32_t> strings;
  std::uint64_t integer_count = 0;
  std::array<std::int64_t, kMaxAxes> integers;
};

/// What cells refer to. Most of it is short-lived: places are given back in the order of a stack,
/// records through free lists. What the memo can reach is kept.
class Heap {
 public:
  /// Integers of a short-lived place, or of a kept one.
  [[nodiscard]] const std::int64_t* integers(std::uint32_t place) const {
    return (place & kKept) != 0 ? kept_.data() + (place & ~kKept) : passing_.data() + place;
  }
  [[nodiscard]] std::uint32_t add(std::span<const std::int64_t> integers) {
    const std::size_t place = top_;
    if (top_ + integers.size() > passing_.size()) passing_.resize(2 * passing_.size() + 1024);
    for (std::int64_t integer : integers) passing_[top_++] = integer;
    return static_cast<std::uint32_t>(place);
  }
  [[nodiscard]] std::uint32_t height() const { return static_cast<std::uint32_t>(top_); }
  /// Gives back the places above.
  void cut(std::uint32_t height) { top_ = height; }

  [[nodiscard]] std::uint32_t new_dict();
  [[nodiscard]] std::uint32_t new_list();
  [[nodiscard]] DictRecord& dict(std::uint32_t record) { return dicts_[record]; }
  [[nodiscard]] ListRecord& list(std::uint32_t record) { return lists_[record]; }
  /// Gives back the records of a value that nothing refers to any more.
  void drop(const Cell& cell);
  /// Makes a value last until the end.
  [[nodiscard]] Cell keep(Cell cell);
  /// Whether a value needs places or records to stay.
  [[nodiscard]] static bool needs_heap(const Cell& cell);
  /// Makes an object whose later BUILD is seen through every reference.
  [[nodiscard]] Cell share_object(const Cell& cell);
  [[nodiscard]] Cell& object(std::uint32_t number) { return objects_[number]; }
  [[nodiscard]] const Cell& object(std::uint32_t number) const { return objects_[number]; }
  [[nodiscard]] Cell resolve(const Cell& cell) const {
    return cell.tag == Tag::kShared ? objects_[cell.a] : cell;
  }
  [[nodiscard]] std::uint32_t add_path(std::span<const Cell> steps);
  [[nodiscard]] std::span<const Cell> path(const Cell& cell) const {
    return std::span(path_steps_).subspan(cell.a, cell.b);
  }
  /// What a hostile file can make grow, the room that a growing array takes for a moment included.
  /// What lists hold is not in it: adding to them counts it.
  [[nodiscard]] std::uint64_t memory_bytes() const {
    constexpr std::uint64_t kGrowing = 3;
    return dicts_.size() * sizeof(DictRecord) + lists_.size() * sizeof(ListRecord) +
           kGrowing * (sizeof(std::int64_t) * (kept_.size() + top_) +
                       sizeof(Cell) * (objects_.size() + path_steps_.size()) +
                       sizeof(std::uint32_t) * (free_dicts_.size() + free_lists_.size()));
  }

 private:
  static constexpr std::uint32_t kKept = std::uint32_t{1} << 31;
  void release_dict(std::uint32_t record);
  void release_list(std::uint32_t record);
  [[nodiscard]] std::uint32_t keep_integers(std::uint32_t place, std::size_t count);
  void pin_dict(std::uint32_t record);

  std::vector<std::int64_t> passing_;  // the first top_ are in use
  std::size_t top_ = 0;
  std::vector<std::int64_t> kept_;
  std::deque<DictRecord> dicts_;  // both grow without moving
  std::deque<ListRecord> lists_;
  std::vector<std::uint32_t> free_dicts_;
  std::vector<std::uint32_t> free_lists_;
  std::vector<Cell> objects_;
  std::vector<Cell> path_steps_;
};

}  // namespace shardwright::dcp
