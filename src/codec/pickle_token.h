// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/endian.h"
#include "codec/pickle_input.h"
#include "codec/pickle_op.h"
#include "shardwright/error.h"

namespace shardwright::pickle {

/// What a decoder may spend on one pickle. The defaults fit checkpoints of any size seen.
struct Limits {
  std::uint64_t bytes = std::uint64_t{2} << 30;
  std::uint64_t opcodes = std::uint64_t{1} << 30;
  std::uint64_t string_bytes = std::uint64_t{1} << 30;  ///< one string, bytes or text line
  std::size_t stack = std::size_t{1} << 24;             ///< values waiting to be collected
  std::size_t marks = 1000;                             ///< MARKs open at once: nesting
  std::size_t memo = std::size_t{1} << 28;
  /// Bytes of the file that the pickle is in: its values may take what Allowance gives such a file.
  /// 0 for the pickle's own bytes, which are more where the record was compressed.
  std::uint64_t file_bytes = 0;
};

/// One opcode with its argument. Which field is set depends on the opcode; the views borrow from
/// the input until the next token is read.
struct Token {
  Op op = Op::kStop;
  std::int64_t number = 0;  ///< small integers, memo indices, extension codes, PROTO's version
  double real = 0.0;        ///< BINFLOAT
  std::string_view text;    ///< payload of strings, bytes and longs; the line of text opcodes
  std::string_view second;  ///< the second line of GLOBAL and INST: the name
};

/// Splits a pickle into opcodes and checks everything that needs no stack: argument lengths against
/// the input and the limits before anything is allocated, frames by PEP 3154 (not nested, not
/// longer than the input, never crossed by an opcode), PROTO only in front and at most 5.
class Tokenizer {
 public:
  /// Starts at `position` of the input. `limits` bounds bytes, opcodes and string sizes.
  Tokenizer(Input& input, const Limits& limits, std::uint64_t position = 0);

  /// Reads the next opcode. False on an error, which error() then tells.
  [[nodiscard]] bool next(Token& token);
  /// What can be read without another look at the input: bytes of the current frame and window. A
  /// specialised reader may take whole opcodes from here and then skip() them.
  [[nodiscard]] std::span<const std::byte> ahead() const { return {cursor_, limit_}; }
  /// REQUIRES: bytes <= ahead().size(), and they end where an opcode ends.
  void skip(std::size_t bytes) {
    cursor_ += bytes;
    opcodes_ += bytes;
  }
  /// Position behind the last opcode.
  [[nodiscard]] std::uint64_t position() const {
    return window_position_ + static_cast<std::uint64_t>(cursor_ - window_);
  }
  /// A place to go on from later: behind the last opcode, or in front of it.
  struct Place {
    std::uint64_t position = 0;
    std::uint64_t frame_end = 0;
  };
  [[nodiscard]] Place place() const { return {position(), frame_end_}; }
  [[nodiscard]] Place token_place() const { return {token_position_, frame_end_}; }
  /// Goes to a place that a tokenizer of the same input gave.
  void go_to(const Place& place);
  [[nodiscard]] std::uint64_t input_size() const { return input_.size(); }
  /// Position of the last opcode.
  [[nodiscard]] std::uint64_t token_position() const { return token_position_; }
  [[nodiscard]] int protocol() const { return protocol_; }
  /// REQUIRES: next() returned false.
  [[nodiscard]] Error error() const { return error_; }

 private:
  [[nodiscard]] bool need(std::uint64_t count) {
    if (static_cast<std::uint64_t>(limit_ - cursor_) >= count) [[likely]] {
      return true;
    }
    return refill(count);
  }
  template <class T>
  [[nodiscard]] bool read(T& value) {
    if (!need(sizeof value)) return false;
    value = load_le<T>(cursor_);
    cursor_ += sizeof value;
    return true;
  }
  template <class T>
  [[nodiscard]] bool read_number(Token& token) {
    T value;
    if (!read(value)) return false;
    token.number = static_cast<std::int64_t>(value);
    return true;
  }
  template <class Length>
  [[nodiscard]] bool read_counted(Token& token) {
    Length length;
    return read(length) && read_payload(static_cast<std::uint64_t>(length), token.text);
  }
  [[nodiscard]] bool read_payload(std::uint64_t length, std::string_view& text) {
    const bool here = static_cast<std::uint64_t>(limit_ - cursor_) >= length;
    if ((!here || length > limits_.string_bytes) && !payload_fits(length)) return false;
    // The window's bytes are plain memory; text is a view of them as characters.
    text = {reinterpret_cast<const char*>(cursor_), static_cast<std::size_t>(length)};
    cursor_ += length;
    return true;
  }
  [[nodiscard]] bool refill_between_opcodes();
  [[nodiscard]] bool refill(std::uint64_t count);
  [[nodiscard]] bool load(std::uint64_t position, std::uint64_t count);
  [[nodiscard]] bool payload_fits(std::uint64_t length);
  [[nodiscard]] bool read_line(std::string_view& line);
  [[nodiscard]] bool read_two_lines(Token& token);
  [[nodiscard]] bool read_rare(Token& token);
  [[nodiscard]] bool read_proto(Token& token);
  [[nodiscard]] bool read_frame();
  [[nodiscard]] bool read_index(Token& token);
  [[nodiscard]] bool refuse(Code code, std::string message);

  Input& input_;
  Limits limits_;
  const std::byte* window_ = nullptr;
  const std::byte* cursor_ = nullptr;
  const std::byte* limit_ = nullptr;  // end of the window or of the frame, whichever comes first
  const std::byte* window_end_ = nullptr;
  std::uint64_t window_position_ = 0;
  std::uint64_t token_position_ = 0;
  std::uint64_t start_ = 0;
  std::uint64_t end_ = 0;  // of the input, or what the byte limit leaves of it
  bool cut_by_limit_ = false;
  std::uint64_t frame_end_ = 0;  // 0: outside frames
  std::uint64_t opcodes_ = 0;
  int protocol_ = 0;
  Error error_;
};

/// How an opcode's argument is written; `kRare` leaves it to the tokenizer's slow part.
enum class Argument : std::uint8_t { kRare, kNone, kU8, kU16, kI32, kU32, kText8, kText32 };

inline constexpr std::array<Argument, 256> kArguments = [] {
  std::array<Argument, 256> arguments{};
  const auto set = [&](std::string_view opcodes, Argument argument) {
    for (char opcode : opcodes) arguments[static_cast<unsigned char>(opcode)] = argument;
  };
  set("(.NRab}e]st)u\x81\x85\x86\x87\x88\x89\x93\x94", Argument::kNone);
  set("Khq", Argument::kU8);
  set("M", Argument::kU16);
  set("J", Argument::kI32);
  set("jr", Argument::kU32);
  set("\x8c"
      "CU\x8a",
      Argument::kText8);
  set("XB", Argument::kText32);
  return arguments;
}();

inline bool Tokenizer::next(Token& token) {
  if (cursor_ == limit_ && !refill_between_opcodes()) [[unlikely]] {
    return false;
  }
  token_position_ = position();
  if (++opcodes_ > limits_.opcodes) [[unlikely]] {
    return refuse(Code::kLimit, "more opcodes than the limit");
  }
  token.op = static_cast<Op>(*cursor_);
  switch (kArguments[std::to_integer<std::size_t>(*cursor_++)]) {
    case Argument::kNone:
      return true;
    case Argument::kU8:
      return read_number<std::uint8_t>(token);
    case Argument::kU16:
      return read_number<std::uint16_t>(token);
    case Argument::kI32:
      return read_number<std::int32_t>(token);
    case Argument::kU32:
      return read_number<std::uint32_t>(token);
    case Argument::kText8:
      return read_counted<std::uint8_t>(token);
    case Argument::kText32:
      return read_counted<std::uint32_t>(token);
    case Argument::kRare:
      break;
  }
  return read_rare(token);
}

}  // namespace shardwright::pickle
