// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_decode.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "base/fail.h"
#include "codec/pickle_decoder.h"
#include "codec/pickle_text.h"

namespace shardwright::pickle {
namespace {

constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();

// Node places, children and text are 32-bit; every input byte makes at most a few of them.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

// `00` and `01` are truths, `007` is no number of Python 3; 0 may have any length.
bool has_leading_zero(std::string_view number) {
  if (number.starts_with('+') || number.starts_with('-')) number.remove_prefix(1);
  return number.starts_with('0') && number.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

Status Decoder::push(Value value) {
  if (stack_.size() >= limits_.stack) {
    return refuse(Code::kLimit, "found more than {} values waiting, the limit", limits_.stack);
  }
  stack_.push_back(value.id());
  return {};
}

// What the values take, and `popped` of them that wait once more while they become one value.
// Arrays are counted at three times their size: while they grow, the old one and the new one are
// there.
Status Decoder::check_memory(std::size_t popped) {
  constexpr std::uint64_t kGrowing = 3;
  const std::uint64_t used = document_.memory_bytes() +
                             kGrowing * sizeof(std::uint32_t) * (stack_.size() + memo_.size()) +
                             (sizeof(Value) + kGrowing * sizeof(std::uint32_t)) * popped;
  if (used <= most_memory_) return {};
  Error error = refuse_expansion(file_bytes_, "its values").error();
  return refuse(error.code, "{}", error.message);
}

Result<Value> Decoder::top() {
  const std::size_t fence = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= fence) {
    return refuse(Code::kPickleCorrupt, "found an empty stack, expected a value");
  }
  return document_.at(stack_.back());
}

Result<Value> Decoder::pop() {
  const Value value = SW_TRY(top());
  stack_.pop_back();
  return value;
}

Result<std::vector<Value>> Decoder::pop_mark() {
  if (marks_.empty()) return refuse(Code::kPickleCorrupt, "no MARK on the stack");
  SW_TRY(check_memory(stack_.size() - marks_.back()));
  std::vector<Value> values;
  values.reserve(stack_.size() - marks_.back());
  for (std::size_t i = marks_.back(); i < stack_.size(); ++i) {
    values.push_back(document_.at(stack_[i]));
  }
  stack_.resize(marks_.back());
  marks_.pop_back();
  return values;
}

Result<Value> Decoder::utf8_string(std::string_view text) {
  if (!is_utf8(text)) {
    return refuse(Code::kPickleCorrupt, "found a string that is no UTF-8, expected UTF-8");
  }
  return document_.string(text);
}

Status Decoder::scalar(const Token& token) {
  switch (token.op) {
    case Op::kNone:
      return push(document_.none());
    case Op::kNewTrue:
    case Op::kNewFalse:
      return push(document_.boolean(token.op == Op::kNewTrue));
    case Op::kBinInt:
    case Op::kBinInt1:
    case Op::kBinInt2:
      return push(document_.integer(token.number));
    case Op::kLong1:
    case Op::kLong4:
      return push(document_.big_integer(token.text));
    case Op::kBinFloat:
      return push(document_.real(token.real));
    case Op::kBinBytes:
    case Op::kShortBinBytes:
    case Op::kBinBytes8:
      return push(document_.bytes(token.text));
    case Op::kByteArray8:
      return push(document_.bytes(token.text, Kind::kByteArray));
    case Op::kExt1:
    case Op::kExt2:
    case Op::kExt4:
      if (token.number <= 0) return refuse(Code::kPickleCorrupt, "found an extension code below 1");
      return push(document_.extension(token.number));
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::text(const Token& token) {
  switch (token.op) {
    case Op::kShortBinUnicode:
    case Op::kBinUnicode:
    case Op::kBinUnicode8:
      return push(SW_TRY(utf8_string(token.text)));
    case Op::kBinString:
    case Op::kShortBinString:
      return push(is_utf8(token.text) ? document_.string(token.text) : document_.bytes(token.text));
    case Op::kString: {
      const auto bytes = unescape_literal(token.text);
      if (!bytes) return refuse(Code::kPickleCorrupt, "found a malformed string literal");
      return push(is_utf8(*bytes) ? document_.string(*bytes) : document_.bytes(*bytes));
    }
    case Op::kUnicode: {
      const auto unescaped = unescape_unicode(token.text);
      if (!unescaped) return refuse(Code::kPickleCorrupt, "found a malformed unicode escape");
      return push(document_.string(*unescaped));
    }
    case Op::kPersId:
      return push(document_.persistent_id(SW_TRY(utf8_string(token.text))));
    case Op::kBinPersId:
      return push(document_.persistent_id(SW_TRY(pop())));
    case Op::kInt:
    case Op::kLong:
    case Op::kFloat:
      return number_text(token);
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::number_text(const Token& token) {
  std::string_view digits = token.text;
  switch (token.op) {
    case Op::kInt:
    case Op::kLong: {
      if (token.op == Op::kInt && (digits == "00" || digits == "01")) {
        return push(document_.boolean(digits == "01"));
      }
      if (token.op == Op::kLong && digits.ends_with('L')) digits.remove_suffix(1);
      if (has_leading_zero(digits)) {
        return refuse(Code::kPickleCorrupt, "found a number with leading zeros");
      }
      const auto bytes = decimal_to_little_endian(digits);
      if (!bytes) {
        return refuse(Code::kPickleCorrupt,
                      "found {} characters that are not a number of at most 4300 digits",
                      digits.size());
      }
      return push(document_.big_integer(*bytes));
    }
    case Op::kFloat: {
      double value = 0;
      const char* end = digits.data() + digits.size();
      const auto parsed = std::from_chars(digits.data(), end, value);
      if (parsed.ec != std::errc() || parsed.ptr != end) {
        return refuse(Code::kPickleCorrupt, "found a malformed float");
      }
      return push(document_.real(value));
    }
    default:
      return refuse_opcode(token);
  }
}

// Python takes no value without a hash as a key or into a set. What calls make is taken to have
// one.
bool Decoder::has_hash(Value value) const {
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kDict:
    case Kind::kSet:
    case Kind::kByteArray:
      return false;
    case Kind::kTuple:
      return value.id() >= without_hash_.size() || !without_hash_[value.id()];
    default:
      return true;
  }
}

// A tuple has a hash if all its elements have: they never change any more, so that this is known
// once and for all.
Status Decoder::push_tuple(std::span<const Value> elements) {
  const Value made = document_.tuple(elements);
  const bool hashes = std::ranges::all_of(elements, [this](Value one) { return has_hash(one); });
  if (!hashes) {
    if (without_hash_.size() <= made.id()) without_hash_.resize(made.id() + std::size_t{1});
    without_hash_[made.id()] = true;
  }
  return push(made);
}

Status Decoder::tuple_of(std::size_t count) {
  std::array<Value, 3> elements;
  for (std::size_t i = count; i-- > 0;) elements[i] = SW_TRY(pop());
  return push_tuple(std::span(elements).first(count));
}

Status Decoder::add_pairs(std::span<const Value> pairs) {
  const Value target = SW_TRY(top());
  const bool takes_pairs =
      target.is(Kind::kDict) || target.is(Kind::kReduce) || target.is(Kind::kObject);
  if (!takes_pairs) return refuse_kind("SETITEMS", target, "a dict or an object");
  if (pairs.size() % 2 != 0) return refuse(Code::kPickleCorrupt, "found a key without a value");
  if (!target.is(Kind::kDict) && target.state()) {
    return refuse(Code::kPickleUnsupported, "found SETITEMS behind BUILD, expected it before");
  }
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (!has_hash(pairs[i])) {
      return refuse_kind("a dict key", pairs[i], "something that can be hashed");
    }
    document_.add_pair(target, pairs[i], pairs[i + 1]);
  }
  return {};
}

Status Decoder::append_all(std::span<const Value> elements, bool to_set) {
  const Value target = SW_TRY(top());
  const bool takes =
      to_set ? target.is(Kind::kSet)
             : target.is(Kind::kList) || target.is(Kind::kReduce) || target.is(Kind::kObject);
  if (!takes) return refuse_kind("an append", target, to_set ? "a set" : "a list or an object");
  if (!target.is(Kind::kList) && !to_set && target.state()) {
    return refuse(Code::kPickleUnsupported, "found APPENDS behind BUILD, expected it before");
  }
  for (Value element : elements) {
    if (to_set && !has_hash(element)) {
      return refuse_kind("a set's member", element, "something that can be hashed");
    }
    document_.append(target, element);
  }
  return {};
}

Status Decoder::container(const Token& token) {
  switch (token.op) {
    case Op::kEmptyTuple:
      return push(document_.empty_tuple());
    case Op::kEmptyList:
      return push(document_.list());
    case Op::kEmptyDict:
      return push(document_.dict());
    case Op::kEmptySet:
      return push(document_.sequence(Kind::kSet));
    case Op::kTuple1:
    case Op::kTuple2:
    case Op::kTuple3:
      return tuple_of(static_cast<std::size_t>(token.op) - static_cast<std::size_t>(Op::kTuple1) +
                      1);
    case Op::kTuple:
    case Op::kList:
    case Op::kFrozenSet: {
      const std::vector<Value> elements = SW_TRY(pop_mark());
      if (token.op == Op::kTuple) return push_tuple(elements);
      if (token.op == Op::kList) return push(document_.sequence(Kind::kList, elements));
      const auto bad = std::ranges::find_if_not(elements, [this](Value v) { return has_hash(v); });
      if (bad != elements.end()) {
        return refuse_kind("a set's member", *bad, "something that can be hashed");
      }
      return push(document_.sequence(Kind::kFrozenSet, elements));
    }
    case Op::kDict: {
      const std::vector<Value> pairs = SW_TRY(pop_mark());
      SW_TRY(push(document_.dict()));
      return add_pairs(pairs);
    }
    case Op::kAppend: {
      const Value element = SW_TRY(pop());
      return append_all(std::span(&element, 1), false);
    }
    case Op::kAppends:
    case Op::kAddItems: {
      const std::vector<Value> elements = SW_TRY(pop_mark());
      return append_all(elements, token.op == Op::kAddItems);
    }
    case Op::kSetItem: {
      std::array<Value, 2> pair;
      pair[1] = SW_TRY(pop());
      pair[0] = SW_TRY(pop());
      return add_pairs(pair);
    }
    case Op::kSetItems: {
      const std::vector<Value> pairs = SW_TRY(pop_mark());
      return add_pairs(pairs);
    }
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::memo_put(std::uint64_t index) {
  const Value value = SW_TRY(top());
  // Picklers number slots one by one; a far index would only buy a huge array.
  if (index >= limits_.memo || index > 2 * memo_size_ + 1024) {
    return refuse(Code::kLimit, "found memo slot {}, expected one near {}", index, memo_size_);
  }
  const auto slot = static_cast<std::size_t>(index);
  if (slot >= memo_.size()) memo_.resize(slot + 1, kUnset);
  if (memo_[slot] != kUnset) {
    return refuse(Code::kPickleCorrupt, "found memo slot {} set twice, expected once", index);
  }
  memo_[slot] = value.id();
  ++memo_size_;
  return {};
}

Status Decoder::memo_get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == kUnset) {
    return refuse(Code::kPickleCorrupt, "found a use of memo slot {}, which was never set", index);
  }
  return push(document_.at(memo_[static_cast<std::size_t>(index)]));
}

Status Decoder::memo(const Token& token) {
  switch (token.op) {
    case Op::kPut:
    case Op::kBinPut:
    case Op::kLongBinPut:
      return memo_put(static_cast<std::uint64_t>(token.number));
    case Op::kMemoize:
      return memo_put(memo_size_);
    case Op::kGet:
    case Op::kBinGet:
    case Op::kLongBinGet:
      return memo_get(static_cast<std::uint64_t>(token.number));
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::stack(const Token& token) {
  switch (token.op) {
    case Op::kProto:
    case Op::kFrame:
      return {};
    case Op::kMark:
      if (marks_.size() >= limits_.marks) {
        return refuse(Code::kLimit, "found values nested deeper than {}, the limit", limits_.marks);
      }
      marks_.push_back(stack_.size());
      return {};
    case Op::kPop:
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return {};
      }
      SW_TRY(pop());
      return {};
    case Op::kPopMark:
      SW_TRY(pop_mark());
      return {};
    case Op::kDup:
      return push(SW_TRY(top()));
    case Op::kNextBuffer:
    case Op::kReadOnlyBuffer:
      return refuse(Code::kPickleUnsupported,
                    "found an out-of-band buffer, expected all data here");
    default:
      return refuse_opcode(token);
  }
}

Result<std::uint64_t> Decoder::run() {
  static constexpr std::array<Handler, 256> kHandlers = [] {
    std::array<Handler, 256> handlers;
    handlers.fill(&Decoder::stack);
    const auto set = [&](std::string_view opcodes, Handler handler) {
      for (char opcode : opcodes) handlers[static_cast<unsigned char>(opcode)] = handler;
    };
    set("pqr\x94ghj", &Decoder::memo);
    set("N\x88\x89JKM\x8a\x8bGBC\x8e\x96\x82\x83\x84", &Decoder::scalar);
    set("\x8cX\x8dTUSVPQILF", &Decoder::text);
    set(")]}\x8f\x85\x86\x87tl\x91"
        "dae\x90su",
        &Decoder::container);
    set("c\x93Rb\x81\x92io", &Decoder::call);
    return handlers;
  }();
  Token token;
  while (true) {
    if (!tokens_.next(token)) return std::unexpected(tokens_.error());
    if (token.op == Op::kStop) break;
    SW_TRY(check_memory());
    SW_TRY((this->*kHandlers[static_cast<std::size_t>(token.op)])(token));
  }
  const Value root = SW_TRY(pop());
  if (!stack_.empty() || !marks_.empty()) {
    return refuse(Code::kPickleCorrupt, "found {} values at STOP, expected one", stack_.size() + 1);
  }
  document_.set_root(root);
  return tokens_.position();
}

Result<Prefix> decode_prefix(std::span<const std::byte> bytes, const Limits& limits) {
  Limits bounded = limits;
  bounded.bytes = std::min(limits.bytes, kMostBytes);
  Decoder decoder(bytes, bounded);
  const std::uint64_t consumed = SW_TRY(decoder.run());
  const int protocol = decoder.protocol();
  return Prefix{std::move(decoder.document()), consumed, protocol};
}

Result<Document> decode(std::span<const std::byte> bytes, const Limits& limits) {
  Prefix prefix = SW_TRY(decode_prefix(bytes, limits));
  if (prefix.consumed != bytes.size()) {
    return fail(
        Code::kPickleCorrupt,
        "pickle@{}: found {} bytes behind STOP, expected none; the file holds more than one "
        "pickle or was damaged",
        prefix.consumed, bytes.size() - prefix.consumed);
  }
  return std::move(prefix.document);
}

}  // namespace shardwright::pickle
