// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/pickle_token.h"
#include "codec/pickle_value.h"
#include "shardwright/error.h"

namespace shardwright::pickle {

/// A pickle and how many bytes it took: old torch files are several pickles one behind another.
struct Prefix {
  Document document;
  std::uint64_t consumed = 0;
  int protocol = 0;
};

/// Reads a pickle of protocol 0 to 5 into an inert value graph. Nothing is imported, called or
/// resolved. What Python 3 would map while reading is mapped: protocol 0-2 names of `__builtin__`
/// and `copy_reg`; and calls that only spell a plain value (`_codecs.encode(text, 'latin1')`,
/// `set([...])`, `bytearray(...)`, `copyreg.__newobj_ex__`) become that value.
///
/// Stricter than CPython: a memo slot may be set once, one value is left at STOP, no PROTO inside.
/// Errors: kPickleCorrupt (malformed or cut), kPickleType (an operation on the wrong kind),
/// kPickleUnsupported (out-of-band buffers, newer protocols), kLimit.
/// Time is linear in the input, memory at most what Allowance gives the file that it is in (kLimit
/// above, before it is allocated); nesting never recurses.
[[nodiscard]] Result<Prefix> decode_prefix(std::span<const std::byte> bytes,
                                           const Limits& limits = {});

/// The same, for input that is one pickle: bytes behind STOP are kPickleCorrupt.
[[nodiscard]] Result<Document> decode(std::span<const std::byte> bytes, const Limits& limits = {});

}  // namespace shardwright::pickle
