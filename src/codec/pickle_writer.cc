// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_writer.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace shardwright::pickle {

Writer::Writer(Protocol protocol) : old_(protocol == Protocol::kTwo) {
  op(Op::kProto);
  out_ += old_ ? '\x02' : '\x04';
}

template <class T>
void Writer::append(T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out_.append(bytes, sizeof value);
}

void Writer::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    op(Op::kBinInt1);
    out_ += static_cast<char>(value);
  } else if (value >= 0 && value < 65536) {
    op(Op::kBinInt2);
    append(static_cast<std::uint16_t>(value));
  } else if (std::in_range<std::int32_t>(value)) {
    op(Op::kBinInt);
    append(static_cast<std::int32_t>(value));
  } else {
    // As few bytes as keep the sign, like CPython.
    std::size_t length = 8;
    const std::int64_t sign = value < 0 ? -1 : 0;
    while ((value >> (8 * (length - 1) - 1)) == sign) --length;
    op(Op::kLong1);
    out_ += static_cast<char>(length);
    for (std::size_t i = 0; i < length; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
}

bool Writer::big_integer(std::string_view little_endian) {
  if (little_endian.size() < 256) {
    op(Op::kLong1);
    out_ += static_cast<char>(little_endian.size());
  } else if (old_) {
    return false;
  } else {
    op(Op::kLong4);
    append(static_cast<std::int32_t>(little_endian.size()));
  }
  out_ += little_endian;
  return true;
}

void Writer::real(double value) {
  op(Op::kBinFloat);
  append(__builtin_bswap64(std::bit_cast<std::uint64_t>(value)));
}

void Writer::text(std::string_view utf8) {
  if (!old_ && utf8.size() < 256) {
    op(Op::kShortBinUnicode);
    out_ += static_cast<char>(utf8.size());
  } else {
    op(Op::kBinUnicode);
    append(static_cast<std::uint32_t>(utf8.size()));
  }
  out_ += utf8;
}

void Writer::bytes(std::string_view bytes) {
  if (bytes.size() < 256) {
    op(Op::kShortBinBytes);
    out_ += static_cast<char>(bytes.size());
  } else {
    op(Op::kBinBytes);
    append(static_cast<std::uint32_t>(bytes.size()));
  }
  out_ += bytes;
}

void Writer::extension(std::int64_t code) {
  if (code < 256) {
    op(Op::kExt1);
    out_ += static_cast<char>(code);
  } else if (code < 65536) {
    op(Op::kExt2);
    append(static_cast<std::uint16_t>(code));
  } else {
    op(Op::kExt4);
    append(static_cast<std::int32_t>(code));
  }
}

void Writer::global_lines(std::string_view module, std::string_view name) {
  op(Op::kGlobal);
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

void Writer::integer_tuple(const std::int64_t* begin, std::size_t count) {
  if (count == 0) return op(Op::kEmptyTuple);
  if (count > 3) op(Op::kMark);
  for (std::size_t i = 0; i < count; ++i) integer(begin[i]);
  op(count > 3 ? Op::kTuple : static_cast<Op>(static_cast<std::size_t>(Op::kTuple1) + count - 1));
}

std::uint32_t Writer::put() {
  if (!old_) {
    op(Op::kMemoize);
  } else if (next_slot_ < 256) {
    op(Op::kBinPut);
    out_ += static_cast<char>(next_slot_);
  } else {
    op(Op::kLongBinPut);
    append(next_slot_);
  }
  return next_slot_++;
}

void Writer::get(std::uint32_t slot) {
  if (slot < 256) {
    op(Op::kBinGet);
    out_ += static_cast<char>(slot);
  } else {
    op(Op::kLongBinGet);
    append(slot);
  }
}

std::string Writer::finish() && {
  op(Op::kStop);
  return std::move(out_);
}

}  // namespace shardwright::pickle
