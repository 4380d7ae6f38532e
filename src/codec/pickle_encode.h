// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "codec/pickle_writer.h"
#include "shardwright/error.h"

namespace shardwright::pickle {

/// Writes a node and all it refers to as one pickle. decode(encode(v)) is v again: shared nodes
/// stay shared (each is memoised if it occurs twice), cycles survive, floats keep their bits, big
/// ints their value. The same document gives the same bytes. Never recurses.
/// Errors: kPickleUnsupported (a global's name with a line break, an int beyond 255 bytes in
/// protocol 2), kLimit (a graph so entangled that its pickle would outgrow it, or nested deeper
/// than decode() accepts).
[[nodiscard]] Result<std::string> encode(const Document& document, Value root, Protocol protocol);
[[nodiscard]] inline Result<std::string> encode(const Document& document, Protocol protocol) {
  return encode(document, document.root(), protocol);
}

/// The pickle of a document's root without an int of it: what stands in front of each place that
/// the node `number` is referred to from, and what stands behind the last one. With
/// encode_integer() of any number between them the pieces are the document's pickle with that one.
[[nodiscard]] Result<std::vector<std::string>> encode_around(const Document& document, Value number,
                                                             Protocol protocol);
[[nodiscard]] std::string encode_integer(std::int64_t number, Protocol protocol);

}  // namespace shardwright::pickle
