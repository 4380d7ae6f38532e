// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/plan.h"

namespace shardwright {

/// Bits of each value in words: of fp4 four. REQUIRES: quantised.bits is 0, 2, 4 or 8.
[[nodiscard]] inline int bits_in_words(const QuantisedSource& quantised) {
  return quantised.bits != 0 ? quantised.bits : 4;
}

/// Integers in a word of 32 bits, or values of fp4 in a byte. REQUIRES: as bits_in_words.
[[nodiscard]] inline int values_per_word(const QuantisedSource& quantised) {
  return (quantised.bits != 0 ? 32 : 8) / bits_in_words(quantised);
}

/// Which of a word's integers, from the lowest bits on, has the coordinate along words.axis.
[[nodiscard]] inline std::int64_t slot_of(const WordPacking& words, int per_word,
                                          std::int64_t coordinate) {
  const std::int64_t at = coordinate % per_word;
  // The even ones lie in the lower half of the word.
  return words.is_interleaved ? at / 2 + at % 2 * (per_word / 2) : at;
}

/// Whether every element of the quantised tensor finds its value, its scale and the like in the
/// catalog's chunks. Error: kPlanInvalid.
[[nodiscard]] Status check_quantised(const Catalog& catalog, const QuantisedSource& quantised);

/// Bytes that `count` of its values take.
[[nodiscard]] std::int64_t stored_value_bytes(const Catalog& catalog,
                                              const QuantisedSource& quantised, std::int64_t count);

}  // namespace shardwright
