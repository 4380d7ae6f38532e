// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/pickle_token.h"
#include "shardwright/error.h"

namespace shardwright::dcp {

/// The memo slots of a pickle that are ever fetched, numbered densely. CPython memoises nearly
/// every object, fetches few of them again: only these few need a place.
class FetchedSlots {
 public:
  void add(std::uint64_t slot) {
    const std::size_t word = static_cast<std::size_t>(slot / 64);
    if (word >= words_.size()) words_.resize(word + 1, 0);
    words_[word] |= std::uint64_t{1} << (slot % 64);
  }
  /// Makes rank() work. Call it after the last add().
  void count();
  [[nodiscard]] bool contains(std::uint64_t slot) const {
    const std::size_t word = static_cast<std::size_t>(slot / 64);
    return word < words_.size() && ((words_[word] >> (slot % 64)) & 1) != 0;
  }
  /// Whether any of the slots [first, first + count) is fetched. REQUIRES: 0 < count <= 64.
  [[nodiscard]] bool contains_any(std::uint64_t first, std::uint64_t count) const {
    const std::size_t word = static_cast<std::size_t>(first / 64);
    const std::uint64_t shift = first % 64;
    const std::uint64_t mask = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    const std::uint64_t low = word < words_.size() ? words_[word] >> shift : 0;
    const bool spills = shift != 0 && word + 1 < words_.size();
    const std::uint64_t high = spills ? words_[word + 1] << (64 - shift) : 0;
    return ((low | high) & mask) != 0;
  }
  /// How many fetched slots come before this one. REQUIRES: contains(slot).
  [[nodiscard]] std::size_t rank(std::uint64_t slot) const {
    const std::size_t word = static_cast<std::size_t>(slot / 64);
    const std::uint64_t below = (std::uint64_t{1} << (slot % 64)) - 1;
    return before_[word] + count_bits(words_[word] & below);
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  // Without a machine option std::popcount is a call; rank() is on the hot path.
  static std::size_t count_bits(std::uint64_t bits) {
    bits -= (bits >> 1) & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<std::size_t>((bits * 0x0101010101010101) >> 56);
  }
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> before_;
  std::size_t size_ = 0;
};

/// A part of the pickle that can be jumped over: the value of the root's last attribute.
struct Detour {
  std::uint64_t begin = 0;       ///< position of its first opcode
  pickle::Tokenizer::Place end;  ///< of the opcode behind it
  std::uint64_t memo_size_at_end = 0;
};

/// What the first pass over a `.metadata` finds out.
struct References {
  FetchedSlots fetched;
  /// Megatron's `all_local_plans`, which repeats every chunk and is often most of the file. Only
  /// set where it certainly ends before the root's attributes do.
  std::optional<Detour> local_plans;
};

/// Reads all opcodes once. With `may_skip_plans`, slots that only the plans fetch do not count.
[[nodiscard]] Result<References> find_references(pickle::Input& input, const pickle::Limits& limits,
                                                 bool may_skip_plans);

}  // namespace shardwright::dcp
