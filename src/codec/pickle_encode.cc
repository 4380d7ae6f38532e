// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_encode.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/pickle_text.h"
#include "codec/pickle_token.h"
#include "codec/pickle_writer.h"

namespace shardwright::pickle {
namespace {

// As CPython: what one APPENDS or SETITEMS collects at most.
constexpr std::uint32_t kBatch = 1000;
constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();

// Values without an identity worth keeping: never memoised.
bool is_atom(Value value) {
  switch (value.kind()) {
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return true;
    case Kind::kTuple:
      return value.size() == 0;
    default:
      return false;
  }
}

class Encoder {
 public:
  Encoder(const Document& document, Protocol protocol)
      : document_(document),
        old_(protocol == Protocol::kTwo),
        writer_(protocol),
        slots_(document.node_count(), kNoSlot),
        shared_(document.node_count(), false),
        limit_(document.node_count() * 256 + document.text_bytes() * 4 + 1024) {}

  /// Leaves an int out; cuts() is then where.
  void leave_out(Value number) { left_out_ = number; }
  Result<std::string> run(Value root);
  [[nodiscard]] const std::vector<std::size_t>& cuts() const { return cuts_; }

 private:
  enum class Do : std::uint8_t {
    kVisit,     // write the node
    kOp,        // write the opcode in `index`
    kPut,       // memoise the node
    kElements,  // append the node's elements from `index` on to what is on the stack
    kPairs,     // the same with SETITEMS
    kMembers,   // the same with ADDITEMS
    kClose,     // all parts of the node are on the stack: collect them
    kState,     // BUILD, if the node has a state
  };
  struct Task {
    Do what;
    Value node;
    std::uint32_t index = 0;
  };
  // Names that the encoder itself writes; memoised apart from the nodes.
  enum Helper : std::uint8_t {
    kEncode,
    kLatin1,
    kByteArrayName,
    kSetName,
    kFrozenSetName,
    kNewObjExName,
    kHelperCount
  };

  void count_references(Value root);
  Status step(const Task& task);
  Status visit(Value node);
  Status visit_compound(Value node);
  Status close(Value node);
  Status write_global(Value node);
  Status write_big_int(Value node);
  void open_mark();
  void close_batch(Op op);
  void batch(const Task& task);
  void close_sequence(Value node, bool again);
  void close_call(Value node, bool again);
  void write_bytes(Value node);
  void write_bytes_old(std::string_view bytes);
  void helper_global(Helper helper, std::string_view module, std::string_view name);
  void put(Value node);
  // Tasks run in the reverse order of these calls.
  void later(Do what, Value node, std::uint32_t index = 0) {
    tasks_.push_back({what, node, index});
  }
  void later_op(Op opcode) { later(Do::kOp, {}, static_cast<std::uint32_t>(opcode)); }

  const Document& document_;
  bool old_;
  Writer writer_;
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> slots_;  // memo slot of each node
  std::vector<bool> shared_;
  std::array<std::uint32_t, kHelperCount> helper_slots_{};
  Value left_out_;
  std::vector<std::size_t> cuts_;
  std::size_t limit_;
  std::size_t task_limit_ = 1024;
  std::size_t marks_ = 0;  // open ones
};

// Finds the nodes that need a memo slot: those with two references, or every node where there is a
// cycle, because a cycle ends only at a container that was memoised before its elements.
void Encoder::count_references(Value root) {
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  std::vector<State> states(document_.node_count(), State::kNew);
  bool has_cycle = false;
  std::vector<std::pair<Value, bool>> pending = {{root, false}};
  std::vector<Value> parts;
  while (!pending.empty()) {
    const auto [node, leaving] = pending.back();
    pending.pop_back();
    State& state = states[node.id()];
    if (leaving) {
      state = State::kDone;
      continue;
    }
    if (is_atom(node)) continue;
    if (state != State::kNew) {
      shared_[node.id()] = true;
      has_cycle = has_cycle || state == State::kOpen;
      continue;
    }
    state = State::kOpen;
    pending.emplace_back(node, true);
    parts.clear();
    document_.append_references(node, parts);
    for (Value part : parts) pending.emplace_back(part, false);
    task_limit_ += 2 * parts.size() + 4;
  }
  if (has_cycle) shared_.assign(shared_.size(), true);
}

void Encoder::put(Value node) {
  if (!shared_[node.id()]) return;
  slots_[node.id()] = writer_.put();
}

void Encoder::helper_global(Helper helper, std::string_view module, std::string_view name) {
  std::uint32_t& slot = helper_slots_[helper];
  if (slot != kNoSlot) return writer_.get(slot);
  writer_.global_lines(module, name);
  slot = writer_.put();
}

Status Encoder::write_big_int(Value node) {
  if (writer_.big_integer(node.text())) return {};
  return fail(Code::kPickleUnsupported, "int of {} bytes: expected at most 255 in protocol 2",
              node.text().size());
}

void Encoder::write_bytes_old(std::string_view bytes) {
  helper_global(kEncode, "_codecs", "encode");
  writer_.text(latin1_text(bytes));
  if (helper_slots_[kLatin1] == kNoSlot) {
    writer_.text("latin1");
    helper_slots_[kLatin1] = writer_.put();
  } else {
    writer_.get(helper_slots_[kLatin1]);
  }
  writer_.op(Op::kTuple2);
  writer_.op(Op::kReduce);
}

void Encoder::write_bytes(Value node) {
  const bool is_array = node.is(Kind::kByteArray);
  const std::string_view bytes = node.text();
  if (is_array) helper_global(kByteArrayName, "builtins", "bytearray");
  if (old_) {
    write_bytes_old(bytes);
  } else {
    writer_.bytes(bytes);
  }
  if (is_array) {
    writer_.op(Op::kTuple1);
    writer_.op(Op::kReduce);
  }
}

Status Encoder::write_global(Value node) {
  later(Do::kState, node);
  later(Do::kPut, node);
  if (!old_) {
    std::vector<Value> names;
    document_.append_references(node, names);
    later_op(Op::kStackGlobal);
    later(Do::kVisit, names[1]);
    later(Do::kVisit, names[0]);
    return {};
  }
  for (std::string_view part : {node.module(), node.name()}) {
    if (part.find('\n') != std::string_view::npos) {
      return fail(Code::kPickleUnsupported,
                  "global: found a line break in its name, expected none");
    }
  }
  writer_.global_lines(node.module(), node.name());
  return {};
}

Status Encoder::visit(Value node) {
  switch (node.kind()) {
    case Kind::kNone:
      writer_.op(Op::kNone);
      return {};
    case Kind::kBool:
      writer_.op(*node.as_bool() ? Op::kNewTrue : Op::kNewFalse);
      return {};
    case Kind::kInt:
      if (node == left_out_) {
        cuts_.push_back(writer_.size());
      } else {
        writer_.integer(*node.as_int());
      }
      return {};
    case Kind::kFloat:
      writer_.real(*node.as_double());
      return {};
    default:
      break;
  }
  if (is_atom(node)) {
    writer_.op(Op::kEmptyTuple);
    return {};
  }
  if (const std::uint32_t slot = slots_[node.id()]; slot != kNoSlot) {
    writer_.get(slot);
    return {};
  }
  return visit_compound(node);
}

Status Encoder::visit_compound(Value node) {
  switch (node.kind()) {
    case Kind::kBigInt:
      SW_TRY(write_big_int(node));
      break;
    case Kind::kString:
      writer_.text(node.text());
      break;
    case Kind::kBytes:
    case Kind::kByteArray:
      write_bytes(node);
      break;
    case Kind::kExtension:
      writer_.extension(*node.as_int());
      break;
    case Kind::kGlobal:
      return write_global(node);
    case Kind::kList:
    case Kind::kDict:
      writer_.op(node.is(Kind::kList) ? Op::kEmptyList : Op::kEmptyDict);
      later(Do::kState, node);
      later(node.is(Kind::kList) ? Do::kElements : Do::kPairs, node);
      break;
    case Kind::kSet:
      if (old_) {
        helper_global(kSetName, "builtins", "set");
        writer_.op(Op::kEmptyList);
        later(Do::kClose, node);
        later(Do::kElements, node);
        return {};
      }
      writer_.op(Op::kEmptySet);
      later(Do::kState, node);
      later(Do::kMembers, node);
      break;
    default: {
      later(Do::kClose, node);
      if (node.is(Kind::kFrozenSet) && old_) {
        helper_global(kFrozenSetName, "builtins", "frozenset");
        writer_.op(Op::kEmptyList);
        later(Do::kElements, node);
        return {};
      }
      if (node.is(Kind::kObject) && node.kwargs()) {
        if (old_) helper_global(kNewObjExName, "copyreg", "__newobj_ex__");
        later(Do::kVisit, node.kwargs());
      }
      if (node.is(Kind::kReduce) || node.is(Kind::kObject)) {
        later(Do::kVisit, node.args());
        later(Do::kVisit, node.callable());
        return {};
      }
      if (node.is(Kind::kPersistentId)) {
        later(Do::kVisit, node[0]);
        return {};
      }
      if (node.size() > 3 || node.is(Kind::kFrozenSet)) open_mark();
      for (std::size_t i = node.size(); i-- > 0;) later(Do::kVisit, node[i]);
      return {};
    }
  }
  put(node);
  return {};
}

void Encoder::open_mark() {
  writer_.op(Op::kMark);
  ++marks_;
}

void Encoder::close_batch(Op op) {
  if (op == Op::kAppends || op == Op::kSetItems || op == Op::kAddItems) --marks_;
  writer_.op(op);
}

// Writes the next batch of a container's elements and asks for the one behind it.
void Encoder::batch(const Task& task) {
  const auto size = static_cast<std::uint32_t>(task.node.size());
  const std::uint32_t end = std::min(size, task.index + kBatch);
  if (task.index == end) return;
  if (end < size) later(task.what, task.node, end);
  const bool single = end - task.index == 1 && task.what != Do::kMembers;
  if (task.what == Do::kMembers) {
    later_op(Op::kAddItems);
  } else if (task.what == Do::kPairs) {
    later_op(single ? Op::kSetItem : Op::kSetItems);
  } else {
    later_op(single ? Op::kAppend : Op::kAppends);
  }
  if (!single) open_mark();
  for (std::uint32_t i = end; i-- > task.index;) {
    if (task.what == Do::kPairs) {
      later(Do::kVisit, task.node.value(i));
      later(Do::kVisit, task.node.key(i));
    } else {
      later(Do::kVisit, task.node[i]);
    }
  }
}

void Encoder::close_sequence(Value node, bool again) {
  const bool marked = node.is(Kind::kFrozenSet) || node.size() > 3;
  if (marked) --marks_;
  if (again && marked) {
    writer_.op(Op::kPopMark);
  } else if (again) {
    writer_.ops(Op::kPop, node.size());
  } else if (node.is(Kind::kFrozenSet)) {
    writer_.op(Op::kFrozenSet);
  } else if (marked) {
    writer_.op(Op::kTuple);
  } else {
    writer_.op(static_cast<Op>(static_cast<std::size_t>(Op::kTuple1) + node.size() - 1));
  }
}

void Encoder::close_call(Value node, bool again) {
  std::size_t parts = 2;
  if (node.is(Kind::kSet) || node.is(Kind::kFrozenSet)) {
    writer_.op(Op::kTuple1);
    if (!again) writer_.op(Op::kReduce);
  } else if (node.is(Kind::kReduce)) {
    if (!again) writer_.op(Op::kReduce);
  } else if (!node.kwargs()) {
    if (!again) writer_.op(Op::kNewObj);
  } else if (old_) {
    writer_.op(Op::kTuple3);
    if (!again) writer_.op(Op::kReduce);
  } else {
    parts = 3;
    if (!again) writer_.op(Op::kNewObjEx);
  }
  if (again) writer_.ops(Op::kPop, parts);
}

// A node that is made from its parts can only be memoised after them. If it lies on a cycle, it
// was written and memoised within one of its parts: then these parts are dropped and that node is
// fetched, as CPython does with recursive tuples.
Status Encoder::close(Value node) {
  const bool again = slots_[node.id()] != kNoSlot;
  const Kind kind = node.kind();
  if (kind == Kind::kPersistentId) {
    writer_.op(again ? Op::kPop : Op::kBinPersId);
  } else if (kind == Kind::kTuple || (kind == Kind::kFrozenSet && !old_)) {
    close_sequence(node, again);
  } else {
    close_call(node, again);
  }
  if (again) {
    writer_.get(slots_[node.id()]);
    return {};
  }
  put(node);
  later(Do::kState, node);
  if (const Value items = node.items()) later(Do::kPairs, items);
  if (const Value appended = node.appended()) later(Do::kElements, appended);
  return {};
}

Status Encoder::step(const Task& task) {
  switch (task.what) {
    case Do::kVisit:
      return visit(task.node);
    case Do::kOp:
      close_batch(static_cast<Op>(task.index));
      return {};
    case Do::kPut:
      put(task.node);
      return {};
    case Do::kElements:
    case Do::kPairs:
    case Do::kMembers:
      batch(task);
      return {};
    case Do::kClose:
      return close(task.node);
    case Do::kState:
      if (const Value state = task.node.state()) {
        later_op(Op::kBuild);
        later(Do::kVisit, state);
      }
      return {};
  }
  return {};
}

Result<std::string> Encoder::run(Value root) {
  helper_slots_.fill(kNoSlot);
  count_references(root);
  later(Do::kVisit, root);
  while (!tasks_.empty()) {
    const Task task = tasks_.back();
    tasks_.pop_back();
    SW_TRY(step(task));
    if (marks_ > Limits().marks) {
      return fail(Code::kLimit,
                  "pickle: found values nested deeper than {}, which no reader accepts",
                  Limits().marks);
    }
    // A graph whose parts are all entangled makes the writer enter the same nodes again and again.
    if (writer_.size() > limit_ || tasks_.size() > task_limit_) {
      return fail(Code::kLimit, "pickle: found a graph whose pickle outgrows {} bytes", limit_);
    }
  }
  return std::move(writer_).finish();
}

}  // namespace

Result<std::string> encode(const Document& document, Value root, Protocol protocol) {
  return Encoder(document, protocol).run(root);
}

Result<std::vector<std::string>> encode_around(const Document& document, Value number,
                                               Protocol protocol) {
  Encoder encoder(document, protocol);
  encoder.leave_out(number);
  const std::string text = SW_TRY(encoder.run(document.root()));
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (const std::size_t cut : encoder.cuts()) {
    pieces.push_back(text.substr(begin, cut - begin));
    begin = cut;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::string encode_integer(std::int64_t number, Protocol protocol) {
  Writer with(protocol);
  const std::size_t begin = with.size();
  with.integer(number);
  std::string text = std::move(with).finish();
  text.pop_back();  // STOP
  return text.substr(begin);
}

}  // namespace shardwright::pickle
