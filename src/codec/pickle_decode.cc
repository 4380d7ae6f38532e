// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_decode.h"

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "base/fail.h"
#include "codec/pickle_text.h"

namespace shardwright::pickle {
namespace {

// Node places, children and text are 32-bit; every input byte makes at most a few of them.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

struct RenamedGlobal {
  std::string_view old_module;
  std::string_view old_name;  // empty: any
  std::string_view module;
  std::string_view name;
};

constexpr std::array<RenamedGlobal, 8> kRenamed = {{
    {"__builtin__", "long", "builtins", "int"},
    {"__builtin__", "unicode", "builtins", "str"},
    {"__builtin__", "basestring", "builtins", "str"},
    {"__builtin__", "xrange", "builtins", "range"},
    {"__builtin__", "unichr", "builtins", "chr"},
    {"__builtin__", "", "builtins", ""},
    {"copy_reg", "", "copyreg", ""},
    {"UserDict", "", "collections", ""},
}};

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const Limits& limits)
      : input_(bytes), limits_(limits), tokens_(input_, limits) {}

  Result<Prefix> run();

 private:
  using Handler = Status (Decoder::*)(const Token&);
  static constexpr Handler handler_of(Op op);
  // Each handles the opcodes that handler_of() gives it.
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
  bool may_copy(std::size_t size);
  Value plain_value_of(Value callable, Value args);
  Value bytes_of_call(Value callable, Value args);

  template <class... Args>
  std::unexpected<Error> refuse(Code code, fmt::format_string<Args...> format, Args&&... args) {
    return fail(code, "pickle@{}: {}", tokens_.token_position(),
                fmt::format(format, std::forward<Args>(args)...));
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
  Tokenizer tokens_;
  Document document_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // stack heights
  std::vector<std::uint32_t> memo_;
  std::size_t memo_size_ = 0;
  std::uint64_t copied_ = 0;
};

constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();

Status Decoder::push(Value value) {
  if (stack_.size() >= limits_.stack) {
    return refuse(Code::kLimit, "found more than {} values waiting, the limit", limits_.stack);
  }
  stack_.push_back(value.id());
  return {};
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
  if (marks_.empty()) return refuse(Code::kPickleCorrupt, "found no MARK, expected one");
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
    case Op::kNewTrue: case Op::kNewFalse:
      return push(document_.boolean(token.op == Op::kNewTrue));
    case Op::kBinInt: case Op::kBinInt1: case Op::kBinInt2:
      return push(document_.integer(token.number));
    case Op::kLong1: case Op::kLong4:
      return push(document_.big_integer(token.text));
    case Op::kBinFloat:
      return push(document_.real(token.real));
    case Op::kBinBytes: case Op::kShortBinBytes: case Op::kBinBytes8:
      return push(document_.bytes(token.text));
    case Op::kByteArray8:
      return push(document_.bytes(token.text, Kind::kByteArray));
    case Op::kExt1: case Op::kExt2: case Op::kExt4:
      if (token.number <= 0) return refuse(Code::kPickleCorrupt, "found an extension code below 1");
      return push(document_.extension(token.number));
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::text(const Token& token) {
  switch (token.op) {
    case Op::kShortBinUnicode: case Op::kBinUnicode: case Op::kBinUnicode8:
      return push(SW_TRY(utf8_string(token.text)));
    case Op::kBinString: case Op::kShortBinString:
      return push(is_utf8(token.text) ? document_.string(token.text)
                                           : document_.bytes(token.text));
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
    case Op::kInt: case Op::kLong: case Op::kFloat:
      return number_text(token);
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::number_text(const Token& token) {
  std::string_view digits = token.text;
  switch (token.op) {
    case Op::kInt: case Op::kLong: {
      if (token.op == Op::kInt && (digits == "00" || digits == "01")) {
        return push(document_.boolean(digits == "01"));
      }
      if (token.op == Op::kLong && digits.ends_with('L')) digits.remove_suffix(1);
      const auto bytes = decimal_to_little_endian(digits);
      if (!bytes) {
        return refuse(Code::kPickleCorrupt,
                      "found {} characters that are no number of at most 4300 digits",
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

Status Decoder::tuple_of(std::size_t count) {
  std::array<Value, 3> elements;
  for (std::size_t i = count; i-- > 0;) elements[i] = SW_TRY(pop());
  return push(document_.tuple(std::span(elements).first(count)));
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
    const Kind kind = pairs[i].kind();
    if (kind == Kind::kList || kind == Kind::kDict || kind == Kind::kSet ||
        kind == Kind::kByteArray) {
      return refuse_kind("a dict key", pairs[i], "something that can be hashed");
    }
    document_.add_pair(target, pairs[i], pairs[i + 1]);
  }
  return {};
}

Status Decoder::append_all(std::span<const Value> elements, bool to_set) {
  const Value target = SW_TRY(top());
  const bool takes = to_set ? target.is(Kind::kSet)
                            : target.is(Kind::kList) || target.is(Kind::kReduce) ||
                                  target.is(Kind::kObject);
  if (!takes) return refuse_kind("an append", target, to_set ? "a set" : "a list or an object");
  if (!target.is(Kind::kList) && !to_set && target.state()) {
    return refuse(Code::kPickleUnsupported, "found APPENDS behind BUILD, expected it before");
  }
  for (Value element : elements) document_.append(target, element);
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
    case Op::kTuple1: case Op::kTuple2: case Op::kTuple3:
      return tuple_of(static_cast<std::size_t>(token.op) - static_cast<std::size_t>(Op::kTuple1) +
                      1);
    case Op::kTuple: case Op::kList: case Op::kFrozenSet: {
      const std::vector<Value> elements = SW_TRY(pop_mark());
      const Kind kind = token.op == Op::kTuple  ? Kind::kTuple
                        : token.op == Op::kList ? Kind::kList
                                                : Kind::kFrozenSet;
      return push(document_.sequence(kind, elements));
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
    case Op::kAppends: case Op::kAddItems: {
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
    case Op::kPut: case Op::kBinPut: case Op::kLongBinPut:
      return memo_put(static_cast<std::uint64_t>(token.number));
    case Op::kMemoize:
      return memo_put(memo_size_);
    case Op::kGet: case Op::kBinGet: case Op::kLongBinGet:
      return memo_get(static_cast<std::uint64_t>(token.number));
    default:
      return refuse_opcode(token);
  }
}

Status Decoder::stack(const Token& token) {
  switch (token.op) {
    case Op::kProto: case Op::kFrame:
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
    case Op::kNextBuffer: case Op::kReadOnlyBuffer:
      return refuse(Code::kPickleUnsupported, "found an out-of-band buffer, expected all data here");
    default:
      return refuse_opcode(token);
  }
}

Result<Value> Decoder::global(std::string_view module, std::string_view name) {
  if (!is_utf8(module) || !is_utf8(name)) {
    return refuse(Code::kPickleCorrupt, "found a global whose name is no UTF-8");
  }
  if (tokens_.protocol() < 3) {
    for (const RenamedGlobal& renamed : kRenamed) {
      if (module != renamed.old_module) continue;
      if (!renamed.old_name.empty() && name != renamed.old_name) continue;
      return document_.global(renamed.module, renamed.name.empty() ? name : renamed.name);
    }
  }
  return document_.global(module, name);
}

Status Decoder::new_object(Value cls, Value args, Value kwargs) {
  if (!args.is(Kind::kTuple)) return refuse_kind("arguments", args, "a tuple");
  const bool is_class = cls.is(Kind::kGlobal) || cls.is(Kind::kReduce) ||
                        cls.is(Kind::kObject) || cls.is(Kind::kExtension) ||
                        cls.is(Kind::kPersistentId);
  if (!is_class) return refuse_kind("an instance", cls, "a class");
  return push(document_.object(cls, args, kwargs));
}

// A call may name one big operand again and again through the memo. A real pickler writes each
// operand once, so together they are never larger than the input.
bool Decoder::may_copy(std::size_t size) {
  if (size > input_.size() - copied_) return false;
  copied_ += size;
  return true;
}

// Bytes that protocol 2, which has none, spells as calls.
Value Decoder::bytes_of_call(Value callable, Value args) {
  const bool latin1 = args.size() == 2 && (args[1].text() == "latin1" || args[1].text() == "latin-1");
  if (latin1 && args[0].is(Kind::kString)) {
    const bool is_array = callable.is_global("builtins", "bytearray");
    if (!is_array && !callable.is_global("_codecs", "encode")) return {};
    if (!may_copy(args[0].text().size())) return {};
    const auto bytes = latin1_bytes(args[0].text());
    if (!bytes) return {};
    return document_.bytes(*bytes, is_array ? Kind::kByteArray : Kind::kBytes);
  }
  if (callable.is_global("builtins", "bytes") && args.size() == 0) return document_.bytes({});
  if (!callable.is_global("builtins", "bytearray")) return {};
  if (args.size() == 0) return document_.bytes({}, Kind::kByteArray);
  if (args.size() == 1 && args[0].is(Kind::kBytes) && may_copy(args[0].text().size())) {
    const std::string copy(args[0].text());
    return document_.bytes(copy, Kind::kByteArray);
  }
  return {};
}

// The value that a call spells, or nothing when it is a call to keep.
Value Decoder::plain_value_of(Value callable, Value args) {
  if (!callable.is(Kind::kGlobal)) return {};
  if (callable.is_global("copyreg", "__newobj_ex__")) {
    const bool fits = args.size() == 3 && args[0].is(Kind::kGlobal) && args[1].is(Kind::kTuple) &&
                      args[2].is(Kind::kDict);
    return fits ? document_.object(args[0], args[1], args[2]) : Value();
  }
  const bool is_set = callable.is_global("builtins", "set");
  if (is_set || callable.is_global("builtins", "frozenset")) {
    if (args.size() != 1 || !args[0].is(Kind::kList) || !may_copy(args[0].size())) return {};
    std::vector<Value> elements;
    for (std::size_t i = 0; i < args[0].size(); ++i) elements.push_back(args[0][i]);
    return document_.sequence(is_set ? Kind::kSet : Kind::kFrozenSet, elements);
  }
  return bytes_of_call(callable, args);
}

Status Decoder::reduce() {
  const Value args = SW_TRY(pop());
  const Value callable = SW_TRY(pop());
  if (!args.is(Kind::kTuple)) return refuse_kind("arguments", args, "a tuple");
  const bool can_be_called = callable.is(Kind::kGlobal) || callable.is(Kind::kReduce) ||
                             callable.is(Kind::kObject) || callable.is(Kind::kExtension) ||
                             callable.is(Kind::kPersistentId);
  if (!can_be_called) return refuse_kind("a call", callable, "a name");
  const Value plain = plain_value_of(callable, args);
  return push(plain ? plain : document_.reduce(callable, args));
}

// Recorded, never run; only values that Python objects could have a state for.
Status Decoder::build() {
  const Value state = SW_TRY(pop());
  const Value target = SW_TRY(top());
  switch (target.kind()) {
    case Kind::kList: case Kind::kDict: case Kind::kSet: case Kind::kGlobal: case Kind::kReduce:
    case Kind::kObject: case Kind::kPersistentId:
      break;
    default:
      return refuse_kind("BUILD", target, "an object");
  }
  if (target.state()) {
    return refuse(Code::kPickleUnsupported, "found BUILD twice on one object, expected it once");
  }
  document_.set_state(target, state);
  return {};
}

Status Decoder::call(const Token& token) {
  switch (token.op) {
    case Op::kGlobal:
      return push(SW_TRY(global(token.text, token.second)));
    case Op::kStackGlobal: {
      const Value name = SW_TRY(pop());
      const Value module = SW_TRY(pop());
      if (!name.is(Kind::kString) || !module.is(Kind::kString)) {
        return refuse_kind("a global's name", name.is(Kind::kString) ? module : name, "a string");
      }
      return push(SW_TRY(global(module.text(), name.text())));
    }
    case Op::kReduce:
      return reduce();
    case Op::kBuild:
      return build();
    case Op::kNewObj: {
      const Value args = SW_TRY(pop());
      const Value cls = SW_TRY(pop());
      return new_object(cls, args, {});
    }
    case Op::kNewObjEx: {
      const Value kwargs = SW_TRY(pop());
      const Value args = SW_TRY(pop());
      const Value cls = SW_TRY(pop());
      if (!kwargs.is(Kind::kDict)) return refuse_kind("keyword arguments", kwargs, "a dict");
      return new_object(cls, args, kwargs);
    }
    case Op::kInst: case Op::kObj: {
      std::vector<Value> values;
      if (token.op == Op::kInst) values.push_back(SW_TRY(global(token.text, token.second)));
      const std::vector<Value> popped = SW_TRY(pop_mark());
      values.insert(values.end(), popped.begin(), popped.end());
      if (values.empty()) return refuse(Code::kPickleCorrupt, "found OBJ without a class");
      const Value args = document_.tuple(std::span<const Value>(values).subspan(1));
      // With arguments, Python 2 called the class: that is a call, not a bare instance.
      if (args.size() > 0 && values[0].is(Kind::kGlobal)) {
        return push(document_.reduce(values[0], args));
      }
      return new_object(values[0], args, {});
    }
    default:
      return refuse_opcode(token);
  }
}

constexpr Decoder::Handler Decoder::handler_of(Op op) {
  switch (op) {
    case Op::kPut: case Op::kBinPut: case Op::kLongBinPut: case Op::kMemoize: case Op::kGet:
    case Op::kBinGet: case Op::kLongBinGet:
      return &Decoder::memo;
    case Op::kNone: case Op::kNewTrue: case Op::kNewFalse: case Op::kBinInt: case Op::kBinInt1:
    case Op::kBinInt2: case Op::kLong1: case Op::kLong4: case Op::kBinFloat: case Op::kBinBytes:
    case Op::kShortBinBytes: case Op::kBinBytes8: case Op::kByteArray8: case Op::kExt1:
    case Op::kExt2: case Op::kExt4:
      return &Decoder::scalar;
    case Op::kShortBinUnicode: case Op::kBinUnicode: case Op::kBinUnicode8: case Op::kBinString:
    case Op::kShortBinString: case Op::kString: case Op::kUnicode: case Op::kPersId:
    case Op::kBinPersId: case Op::kInt: case Op::kLong: case Op::kFloat:
      return &Decoder::text;
    case Op::kEmptyTuple: case Op::kEmptyList: case Op::kEmptyDict: case Op::kEmptySet:
    case Op::kTuple1: case Op::kTuple2: case Op::kTuple3: case Op::kTuple: case Op::kList:
    case Op::kFrozenSet: case Op::kDict: case Op::kAppend: case Op::kAppends: case Op::kAddItems:
    case Op::kSetItem: case Op::kSetItems:
      return &Decoder::container;
    case Op::kGlobal: case Op::kStackGlobal: case Op::kReduce: case Op::kBuild: case Op::kNewObj:
    case Op::kNewObjEx: case Op::kInst: case Op::kObj:
      return &Decoder::call;
    default:
      return &Decoder::stack;
  }
}

Result<Prefix> Decoder::run() {
  static constexpr auto kHandlers = [] {
    std::array<Handler, 256> handlers{};
    for (std::size_t byte = 0; byte < handlers.size(); ++byte) {
      handlers[byte] = handler_of(static_cast<Op>(byte));
    }
    return handlers;
  }();
  Token token;
  while (true) {
    if (!tokens_.next(token)) return std::unexpected(tokens_.error());
    if (token.op == Op::kStop) break;
    SW_TRY((this->*kHandlers[static_cast<std::size_t>(token.op)])(token));
  }
  const Value root = SW_TRY(pop());
  if (!stack_.empty() || !marks_.empty()) {
    return refuse(Code::kPickleCorrupt, "found {} values at STOP, expected one", stack_.size() + 1);
  }
  document_.set_root(root);
  return Prefix{std::move(document_), tokens_.position(), tokens_.protocol()};
}

}  // namespace

Result<Prefix> decode_prefix(std::span<const std::byte> bytes, const Limits& limits) {
  Limits bounded = limits;
  bounded.bytes = std::min(limits.bytes, kMostBytes);
  return Decoder(bytes, bounded).run();
}

Result<Document> decode(std::span<const std::byte> bytes, const Limits& limits) {
  Prefix prefix = SW_TRY(decode_prefix(bytes, limits));
  if (prefix.consumed != bytes.size()) {
    return fail(Code::kPickleCorrupt,
                "pickle@{}: found {} bytes behind STOP, expected none; the file holds more than one "
                "pickle or was damaged",
                prefix.consumed, bytes.size() - prefix.consumed);
  }
  return std::move(prefix.document);
}

}  // namespace shardwright::pickle
