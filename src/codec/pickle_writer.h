// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/pickle_op.h"

namespace shardwright::pickle {

/// Protocols that can be written.
enum class Protocol : std::uint8_t {
  /// Only opcodes that torch.load(weights_only=True) reads; bytes and sets become calls.
  kTwo = 2,
  kFour = 4,
};

/// Appends opcodes to a pickle. It starts with PROTO; finish() writes STOP. Frames are left out,
/// which every reader of protocol 4 accepts.
class Writer {
 public:
  explicit Writer(Protocol protocol);
  [[nodiscard]] bool is_protocol_two() const { return old_; }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  void reserve(std::size_t bytes) { out_.reserve(bytes); }

  void op(Op op) { out_ += static_cast<char>(op); }
  void ops(Op op, std::size_t count) { out_.append(count, static_cast<char>(op)); }
  /// The shortest form of an int.
  void integer(std::int64_t value);
  /// An int as little-endian two's complement. False where protocol 2 has no opcode for the size.
  [[nodiscard]] bool big_integer(std::string_view little_endian);
  void real(double value);
  /// REQUIRES: UTF-8 (surrogates allowed), below 4 GiB.
  void text(std::string_view utf8);
  /// REQUIRES: protocol 4; below 4 GiB.
  void bytes(std::string_view bytes);
  void extension(std::int64_t code);
  /// GLOBAL. REQUIRES: no line break in either name.
  void global_lines(std::string_view module, std::string_view name);
  /// A tuple of integers.
  void integer_tuple(const std::int64_t* begin, std::size_t count);
  /// Memoises what is on top of the stack; returns its slot.
  std::uint32_t put();
  void get(std::uint32_t slot);
  [[nodiscard]] std::string finish() &&;

 private:
  template <class T>
  void append(T value);

  bool old_;
  std::string out_;
  std::uint32_t next_slot_ = 0;
};

}  // namespace shardwright::pickle
