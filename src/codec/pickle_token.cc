// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_token.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>

#include "base/translated.h"

namespace shardwright::pickle {
namespace {

constexpr int kNewestProtocol = 5;

}  // namespace

Tokenizer::Tokenizer(Input& input, const Limits& limits, std::uint64_t position)
    : input_(input),
      limits_(limits),
      window_position_(position),
      token_position_(position),
      start_(position),
      end_(position + std::min(input.size() - position, limits.bytes)),
      cut_by_limit_(end_ < input.size()) {}

bool Tokenizer::refuse(Code code, std::string message) {
  error_ = Error{code, translated("pickle@{}: {}", token_position_, message), 0};
  return false;
}

void Tokenizer::go_to(const Place& place) {
  window_ = cursor_ = limit_ = window_end_ = nullptr;
  window_position_ = place.position;
  frame_end_ = place.frame_end;
}

bool Tokenizer::refill_between_opcodes() {
  if (frame_end_ == position()) frame_end_ = 0;
  return refill(1);
}

// Called when fewer than `count` bytes are left before the end of the window or of the frame.
bool Tokenizer::refill(std::uint64_t count) {
  const std::uint64_t at = position();
  if (frame_end_ != 0 && count > frame_end_ - at) {
    return refuse(Code::kPickleCorrupt,
                  translated("found an opcode that crosses the end of its frame at {}, expected "
                             "it inside; the file was damaged or made by hand",
                             frame_end_));
  }
  if (count > end_ - at) {
    if (cut_by_limit_) {
      return refuse(Code::kLimit, translated("found more bytes than {}, the limit", limits_.bytes));
    }
    return refuse(Code::kPickleCorrupt,
                  translated("found the end of the input at {}, expected {} more bytes; the "
                             "file was cut or damaged, copy it again",
                             end_, count - (end_ - at)));
  }
  if (static_cast<std::uint64_t>(window_end_ - cursor_) < count && !load(at, count)) return false;
  limit_ = window_end_;
  if (frame_end_ != 0) {
    limit_ = cursor_ + std::min(static_cast<std::uint64_t>(window_end_ - cursor_), frame_end_ - at);
  }
  return true;
}

bool Tokenizer::load(std::uint64_t position, std::uint64_t count) {
  auto bytes = input_.window(position, static_cast<std::size_t>(count));
  if (!bytes) {
    error_ = std::move(bytes).error();
    return false;
  }
  if (bytes->size() < count) return refuse(Code::kShortRead, "found fewer bytes than announced");
  window_ = cursor_ = bytes->data();
  window_end_ = window_ + std::min<std::uint64_t>(bytes->size(), end_ - position);
  window_position_ = position;
  return true;
}

// The lengths are compared with what is left before any buffer grows.
bool Tokenizer::payload_fits(std::uint64_t length) {
  const std::uint64_t left = end_ - position();
  if (length > left) {
    return refuse(Code::kPickleCorrupt,
                  translated("found a length of {}, expected at most the {} bytes that are left",
                             length, left));
  }
  if (length > limits_.string_bytes) {
    return refuse(Code::kLimit, translated("found a string of {} bytes, expected at most {}",
                                           length, limits_.string_bytes));
  }
  return refill(length);
}

bool Tokenizer::read_line(std::string_view& line) {
  std::uint64_t searched = 0;
  while (true) {
    const std::byte* newline = std::find(cursor_ + searched, limit_, std::byte{'\n'});
    if (newline != limit_) {
      line = {reinterpret_cast<const char*>(cursor_), static_cast<std::size_t>(newline - cursor_)};
      cursor_ = newline + 1;
      return true;
    }
    searched = static_cast<std::uint64_t>(limit_ - cursor_);
    if (searched >= limits_.string_bytes) return refuse(Code::kLimit, "found a line without end");
    const std::uint64_t left = (frame_end_ != 0 ? frame_end_ : end_) - position();
    if (!refill(std::max(std::min(searched * 2 + 64, left), searched + 1))) return false;
  }
}

bool Tokenizer::read_two_lines(Token& token) {
  const std::uint64_t begin = position();
  if (!read_line(token.text)) return false;
  const std::size_t first = token.text.size();
  if (!read_line(token.second)) return false;
  const std::size_t second = token.second.size();
  const std::uint64_t length = position() - begin;
  if (begin < window_position_) {
    // The window moved on for the second line, so the first view dangles: take both again.
    if (!load(begin, length)) return false;
    cursor_ += length;
    limit_ = cursor_;
  }
  const char* text = reinterpret_cast<const char*>(cursor_ - length);
  token.text = {text, first};
  token.second = {text + first + 1, second};
  return true;
}

bool Tokenizer::read_index(Token& token) {
  std::string_view line;
  if (!read_line(line)) return false;
  std::uint32_t index = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), index);
  if (failure != std::errc() || end != line.data() + line.size()) {
    return refuse(Code::kPickleCorrupt, "found a memo index that is no 32-bit decimal number");
  }
  token.number = index;
  return true;
}

bool Tokenizer::read_proto(Token& token) {
  if (token_position_ != start_) {
    return refuse(Code::kPickleCorrupt, "found PROTO inside the stream, expected it only in front");
  }
  if (!read_number<std::uint8_t>(token)) return false;
  if (token.number > kNewestProtocol) {
    return refuse(Code::kPickleUnsupported, translated("found protocol {}, expected at most {}",
                                                       token.number, kNewestProtocol));
  }
  protocol_ = static_cast<int>(token.number);
  return true;
}

bool Tokenizer::read_frame() {
  if (frame_end_ != 0) {
    return refuse(Code::kPickleCorrupt, "found a frame inside a frame");
  }
  std::uint64_t length = 0;
  if (!read(length)) return false;
  if (length > end_ - position()) {
    return refuse(Code::kPickleCorrupt,
                  translated("found a frame of {} bytes, expected at most the {} that are left",
                             length, end_ - position()));
  }
  frame_end_ = length == 0 ? 0 : position() + length;
  limit_ = cursor_;  // the next read recomputes the limit
  return true;
}

bool Tokenizer::read_rare(Token& token) {
  switch (token.op) {
    case Op::kPop:
    case Op::kPopMark:
    case Op::kDup:
    case Op::kBinPersId:
    case Op::kDict:
    case Op::kList:
    case Op::kObj:
    case Op::kEmptySet:
    case Op::kAddItems:
    case Op::kFrozenSet:
    case Op::kNewObjEx:
    case Op::kNextBuffer:
    case Op::kReadOnlyBuffer:
      return true;
    case Op::kProto:
      return read_proto(token);
    case Op::kFrame:
      return read_frame();
    case Op::kExt1:
      return read_number<std::uint8_t>(token);
    case Op::kExt2:
      return read_number<std::uint16_t>(token);
    case Op::kExt4:
      return read_number<std::int32_t>(token);
    case Op::kGet:
    case Op::kPut:
      return read_index(token);
    case Op::kInt:
    case Op::kLong:
    case Op::kFloat:
    case Op::kString:
    case Op::kUnicode:
    case Op::kPersId:
      return read_line(token.text);
    case Op::kGlobal:
    case Op::kInst:
      return read_two_lines(token);
    case Op::kBinUnicode8:
    case Op::kBinBytes8:
    case Op::kByteArray8:
      return read_counted<std::uint64_t>(token);
    case Op::kBinFloat: {
      std::uint64_t bits = 0;
      if (!read(bits)) return false;
      token.real = std::bit_cast<double>(__builtin_bswap64(bits));
      return true;
    }
    case Op::kLong4:
    case Op::kBinString: {
      std::int32_t length = 0;
      if (!read(length)) return false;
      if (length < 0) return refuse(Code::kPickleCorrupt, "found a negative length");
      return read_payload(static_cast<std::uint64_t>(length), token.text);
    }
    default:
      return refuse(Code::kPickleCorrupt, translated("found byte {:#04x}, expected an opcode",
                                                     static_cast<unsigned>(token.op)));
  }
}

}  // namespace shardwright::pickle
