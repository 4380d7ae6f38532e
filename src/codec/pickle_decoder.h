// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/allowance.h"
#include "base/fail.h"
#include "codec/pickle_decode.h"
#include "codec/pickle_token.h"
#include "codec/pickle_value.h"

namespace shardwright::pickle {

/// The pickle machine behind decode(): every value is a node of the document.
class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const Limits& limits)
      : input_(bytes),
        limits_(limits),
        file_bytes_(limits.file_bytes != 0 ? limits.file_bytes : bytes.size()),
        most_memory_(Allowance::of(file_bytes_)),
        tokens_(input_, limits) {}

  /// Position behind the pickle. After an error document() has what came before it.
  Result<std::uint64_t> run();
  [[nodiscard]] Document& document() { return document_; }
  [[nodiscard]] int protocol() const { return tokens_.protocol(); }

 private:
  using Handler = Status (Decoder::*)(const Token&);
  // Each handles the opcodes that run() gives it.
  Status scalar(const Token& token);
  Status text(const Token& token);
  Status number_text(const Token& token);
  Status container(const Token& token);
  Status memo(const Token& token);
  Status stack(const Token& token);
  Status call(const Token& token);

  Status push(Value value);
  Result<Value> pop();
  Result<Value> top();
  Result<std::vector<Value>> pop_mark();
  bool has_hash(Value value) const;
  Status push_tuple(std::span<const Value> elements);
  Status tuple_of(std::size_t count);
  Status add_pairs(std::span<const Value> pairs);
  Status append_all(std::span<const Value> elements, bool to_set);
  Status memo_put(std::uint64_t index);
  Status memo_get(std::uint64_t index);
  Status build();
  Status new_object(Value cls, Value args, Value kwargs);
  Status reduce();
  Result<Value> global(std::string_view module, std::string_view name);
  Result<Value> utf8_string(std::string_view text);
  Status check_memory(std::size_t popped = 0);
  bool may_copy(std::size_t size);
  Value plain_value_of(Value callable, Value args);
  Value bytes_of_call(Value callable, Value args);

  template <class... Args>
  std::unexpected<Error> refuse(Code code, fmt::format_string<Args...> format, Args&&... args) {
    return fail(code, "pickle@{}: {}", tokens_.token_position(),
                translated(format, std::forward<Args>(args)...));
  }
  std::unexpected<Error> refuse_opcode(const Token& token) {
    return refuse(Code::kPickleCorrupt, "found byte {:#04x}, expected an opcode",
                  static_cast<unsigned>(token.op));
  }
  std::unexpected<Error> refuse_kind(std::string_view operation, Value found,
                                     std::string_view expected) {
    return refuse(Code::kPickleType, "found {} of {}, expected {}; the file was made by hand",
                  operation, kind_name(found.kind()), expected);
  }

  SpanInput input_;
  Limits limits_;
  std::uint64_t file_bytes_;
  std::uint64_t most_memory_;
  Tokenizer tokens_;
  Document document_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // stack heights
  std::vector<std::uint32_t> memo_;
  std::size_t memo_size_ = 0;
  std::vector<bool> without_hash_;  // tuples, by id
  std::uint64_t copied_ = 0;
};

}  // namespace shardwright::pickle
