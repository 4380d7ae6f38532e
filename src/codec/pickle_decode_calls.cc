// SPDX-License-Identifier: Apache-2.0
// Globals, objects and calls: recorded, and recognised where they only spell a plain value.
#include <array>
#include <string>
#include <vector>

#include "codec/pickle_decoder.h"
#include "codec/pickle_names.h"
#include "codec/pickle_text.h"

namespace shardwright::pickle {

Result<Value> Decoder::global(std::string_view module, std::string_view name) {
  if (!is_utf8(module) || !is_utf8(name)) {
    return refuse(Code::kPickleCorrupt, "found a global whose name is no UTF-8");
  }
  const GlobalName found = name_in_python3({module, name}, tokens_.protocol());
  return document_.global(found.module, found.name);
}

Status Decoder::new_object(Value cls, Value args, Value kwargs) {
  if (!args.is(Kind::kTuple)) return refuse_kind("arguments", args, "a tuple");
  const bool is_class = cls.is(Kind::kGlobal) || cls.is(Kind::kReduce) || cls.is(Kind::kObject) ||
                        cls.is(Kind::kExtension) || cls.is(Kind::kPersistentId);
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
  const bool latin1 =
      args.size() == 2 && (args[1].text() == "latin1" || args[1].text() == "latin-1");
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
    for (std::size_t i = 0; i < args[0].size(); ++i) {
      if (!has_hash(args[0][i])) return {};
      elements.push_back(args[0][i]);
    }
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
    case Kind::kGlobal:
    case Kind::kReduce:
    case Kind::kObject:
    case Kind::kPersistentId:
      break;
    default:  // plain lists, dicts and sets have none in Python either
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
    case Op::kInst:
    case Op::kObj: {
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

}  // namespace shardwright::pickle
