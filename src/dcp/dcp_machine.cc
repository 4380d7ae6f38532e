// SPDX-License-Identifier: Apache-2.0
#include "dcp/dcp_machine.h"

#include <algorithm>
#include <array>

#include "base/allowance.h"
#include "base/endian.h"
#include "base/fail.h"

namespace shardwright::dcp {
namespace {

using pickle::Op;
using pickle::Token;

// In the order of Key, so that a name's number in the pool is its key.
constexpr std::array<std::string_view, kKeyCount> kKeyNames = {"state_dict_metadata",
                                                               "planner_data",
                                                               "storage_data",
                                                               "storage_meta",
                                                               "version",
                                                               "mcore_data",
                                                               "properties",
                                                               "size",
                                                               "chunks",
                                                               "offsets",
                                                               "sizes",
                                                               "fqn",
                                                               "index",
                                                               "offset",
                                                               "relative_path",
                                                               "length",
                                                               "transform_descriptors",
                                                               "dtype",
                                                               "layout",
                                                               "nd_reformulated_orig_global_shape"};

}  // namespace

Machine::Machine(pickle::Input& input, const DcpMetadataOptions& options,
                 const References& references)
    : tokens_(input, options.limits),
      options_(options),
      references_(references),
      collector_(input.size(), options.defects),
      memo_(references.fetched.size()),
      memo_set_(references.fetched.size(), false) {
  key_slots_.fill(kNone32);
  for (std::string_view name : kKeyNames) static_cast<void>(collector_.strings().intern(name));
}

bool Machine::refuse(Code code, std::string_view message) {
  error_ = Error{code, translated("@{}{}", tokens_.token_position(), message), 0};
  return false;
}

bool Machine::refuse(Status status) {
  error_ = std::move(status).error();
  return false;
}

bool Machine::push(const Cell& cell) {
  if (stack_.size() >= options_.limits.stack) [[unlikely]] {
    return refuse(Code::kLimit, ": found more values waiting than the limit");
  }
  stack_.push_back(cell);
  return true;
}

bool Machine::has(std::size_t count) {
  if (stack_.size() - fence_ >= count) [[likely]] {
    return true;
  }
  return refuse(Code::kMetadataCorrupt, ": found an empty stack, expected a value");
}

Cell Machine::pop() {
  const Cell cell = stack_.back();
  stack_.pop_back();
  return cell;
}

bool Machine::memoize(std::uint64_t slot) {
  ++memo_size_;
  if (!references_.fetched.contains(slot)) [[likely]] {
    return true;
  }
  if (!has(1)) return false;
  const std::size_t rank = references_.fetched.rank(slot);
  if (memo_set_[rank]) return refuse(Code::kMetadataCorrupt, ": found a memo slot set twice");
  memo_set_[rank] = true;
  stack_.back() = heap_.keep(stack_.back());
  memo_[rank] = stack_.back();
  note_slot(stack_.back(), slot);
  return true;
}

void Machine::note_slot(const Cell& cell, std::uint64_t slot) {
  if (cell.tag == Tag::kString && cell.a < kKeyCount) {
    key_slots_[cell.a] = static_cast<std::uint32_t>(slot);
  }
  if (cell.tag == Tag::kGlobal && static_cast<Class>(cell.n) == Class::kSize) {
    size_slot_ = static_cast<std::uint32_t>(slot);
  }
}

bool Machine::fetch(std::uint64_t slot) {
  if (!references_.fetched.contains(slot)) [[unlikely]] {
    return refuse(Code::kMetadataCorrupt, ": found a use of an unknown memo slot");
  }
  const std::size_t rank = references_.fetched.rank(slot);
  if (!memo_set_[rank]) [[unlikely]] {
    missed_a_slot_ = true;
    return refuse(Code::kMetadataCorrupt,
                  translated(": found a use of memo slot {}, which was never set", slot));
  }
  return push(memo_[rank]);
}

bool Machine::fetch_and_begin_object(std::uint64_t slot) {
  if (!fetch(slot)) return false;
  const Cell& cell = stack_.back();
  if (cell.tag == Tag::kGlobal && fast_object(cell)) return true;
  return !error_;
}

// Values at work and what was collected share one allowance.
bool Machine::has_memory() {
  if (heap_.memory_bytes() <= collector_.allowance().left()) [[likely]] {
    return true;
  }
  Error error = refuse_expansion(tokens_.input_size(), "its values").error();
  return refuse(error.code, ": " + error.message);
}

bool Machine::open_mark() {
  if (marks_.size() >= options_.limits.marks) {
    return refuse(Code::kLimit, ": found values nested deeper than the limit");
  }
  if (!has_memory()) return false;
  marks_.push_back({static_cast<std::uint32_t>(stack_.size()), heap_.height()});
  fence_ = stack_.size();
  return true;
}

bool Machine::close_mark(std::size_t& first) {
  if (marks_.empty()) return refuse(Code::kMetadataCorrupt, ": no MARK on the stack");
  first = marks_.back().stack_size;
  marks_.pop_back();
  fence_ = marks_.empty() ? 0 : marks_.back().stack_size;
  return true;
}

bool Machine::push_string(std::string_view text) {
  const auto id = collector_.strings().intern(text);
  if (!id) return refuse(Code::kLimit, ": found too many strings that collide");
  return push({Tag::kString, 0, 0, *id, 0, 0});
}

bool Machine::push_bytes_as_int(std::string_view little_endian) {
  std::size_t length = little_endian.size();
  const bool negative = length > 0 && (little_endian.back() & '\x80') != 0;
  const char padding = negative ? '\xff' : '\0';
  while (length > 8 && little_endian[length - 1] == padding) --length;
  std::array<char, 8> low;
  low.fill(padding);
  std::copy_n(little_endian.begin(), std::min<std::size_t>(length, 8), low.begin());
  if (length > 8 || ((low[7] & '\x80') != 0) != negative) return push({Tag::kHuge});
  return push(int_cell(load_le<std::int64_t>(as_bytes({low.data(), low.size()}).data())));
}

Cell Machine::tuple_of(std::span<const Cell> elements) {
  const std::size_t count = elements.size();
  const auto all = [&](Tag tag) {
    return std::ranges::all_of(elements, [&](const Cell& cell) { return cell.tag == tag; });
  };
  if (all(Tag::kInt)) {
    if (count > kMaxAxes) return {Tag::kWide};
    std::array<std::int64_t, kMaxAxes> integers{};
    for (std::size_t i = 0; i < count; ++i) integers[i] = int_of(elements[i]);
    const std::uint32_t place = heap_.add(std::span(integers).first(count));
    return {Tag::kDims, static_cast<std::uint8_t>(count), 0, place, 0, 0};
  }
  if (count == 1 && elements[0].tag == Tag::kDims) {
    return {Tag::kArguments, elements[0].n, 0, elements[0].a, 0, 0};
  }
  if (count == 1 && (elements[0].tag == Tag::kWide || elements[0].tag == Tag::kHuge)) {
    return elements[0];
  }
  if (count == 1 && elements[0].tag == Tag::kList) {
    const Cell dims = dims_of(&elements[0]);
    return {dims.tag == Tag::kDims ? Tag::kArguments : dims.tag, dims.n, 0, dims.a, 0, 0};
  }
  const bool huge =
      std::ranges::any_of(elements, [](const Cell& cell) { return cell.tag == Tag::kHuge; });
  if (huge) return {Tag::kHuge};
  // The state of a TensorProperties begins with dtype and layout.
  const bool has_dtype =
      elements[0].tag == Tag::kGlobal && collector_.text(elements[0].a) == "torch";
  if (count == 5 && has_dtype) {
    const std::uint32_t layout = elements[1].tag == Tag::kLayout ? elements[1].a : kNone32;
    const std::uint8_t format = elements[3].tag == Tag::kFormat ? elements[3].n : std::uint8_t{0};
    return {Tag::kProperties, format, 0, elements[0].b, layout, 0};
  }
  // A member of an enum by its name, as some Pythons pickle it.
  const bool is_member = count == 2 && elements[0].tag == Tag::kGlobal &&
                         elements[1].tag == Tag::kString && is_format(elements[0]);
  if (is_member) return {Tag::kFormat, elements[0].n};
  if (count == 3 && elements[0].tag == Tag::kString && collector_.text(elements[0].a) == "i8") {
    return {Tag::kInt64Name};
  }
  if (count == 2 && elements[0].tag == Tag::kInt64Type && elements[1].tag == Tag::kEightBytes) {
    return {Tag::kInt64Value, 0, 0, 0, elements[1].b, elements[1].c};
  }
  const bool is_path =
      elements[0].tag == Tag::kString && std::ranges::all_of(elements, [](const Cell& cell) {
        return cell.tag == Tag::kString || cell.tag == Tag::kInt;
      });
  if (is_path && count == 1) return {Tag::kText, 0, 0, elements[0].a, 0, 0};
  if (is_path && options_.planner_paths) {
    return {Tag::kPath, 0, 0, heap_.add_path(elements), static_cast<std::uint32_t>(count), 0};
  }
  for (const Cell& cell : elements) heap_.drop(cell);
  return {};
}

bool Machine::small_tuple(std::size_t count) {
  if (!has(count)) return false;
  const std::size_t first = stack_.size() - count;
  const Cell made = tuple_of(std::span(stack_).subspan(first));
  stack_.resize(first);
  return push(made);
}

bool Machine::tuple(std::size_t first) {
  if (first == stack_.size()) return push({Tag::kDims});
  return small_tuple(stack_.size() - first);
}

// What a list needs to keep the elements, with the room that it takes while it grows.
std::uint64_t Machine::memory_of(std::span<const Cell> elements) const {
  constexpr std::uint64_t kGrowing = 3;
  std::uint64_t bytes = 0;
  for (const Cell& element : elements) {
    const Cell& value = element.tag == Tag::kShared ? heap_.object(element.a) : element;
    if (value.tag == Tag::kChunk) bytes += kGrowing * Collector::chunk_bytes(value.n);
    if (value.tag == Tag::kString) bytes += kGrowing * sizeof(std::uint32_t);
  }
  return bytes;
}

// Chunks that follow one another in a list, packed into it; returns how many there were.
std::size_t Machine::append_chunks(ListRecord& list, std::span<const Cell> elements) {
  const std::uint8_t axes = heap_.resolve(elements[0]).n;
  if (list.chunks.empty()) {
    list.chunks = ChunkList(axes);
    list.chunks.reserve(elements.size());
  }
  Chunk chunk;
  chunk.file = Collector::kUnknown;
  chunk.box = Box::whole(Dims::filled(axes, 0));
  std::size_t count = 0;
  for (; count < elements.size(); ++count) {
    const Cell value = heap_.resolve(elements[count]);
    if (value.tag != Tag::kChunk || value.n != axes || axes != list.chunks.axes()) break;
    const std::int64_t* origin = heap_.integers(value.a);
    const std::int64_t* shape = heap_.integers(value.b);
    for (int axis = 0; axis < axes; ++axis) {
      chunk.box.origin[axis] = origin[axis];
      chunk.box.shape[axis] = shape[axis];
    }
    list.chunks.push_back(chunk);
  }
  return count;
}

bool Machine::append_all(const Cell& target, std::span<const Cell> elements) {
  if (target.tag != Tag::kList) {
    for (const Cell& element : elements) heap_.drop(element);
    return true;
  }
  ListRecord& list = heap_.list(target.a);
  const std::uint64_t bytes = memory_of(elements);
  if (!has_memory()) return false;
  if (const Status taken = collector_.allowance().take(bytes, "its lists"); !taken) {
    return refuse(Code::kLimit, ": " + taken.error().message);
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Cell value = heap_.resolve(elements[i]);
    if (value.tag == Tag::kChunk) {
      const std::size_t count = append_chunks(list, elements.subspan(i));
      list.mixed = list.mixed || count == 0;
      i += count == 0 ? 0 : count - 1;
    } else if (value.tag == Tag::kInt) {
      if (list.integer_count < kMaxAxes) list.integers[list.integer_count] = int_of(value);
      ++list.integer_count;
    } else if (value.tag == Tag::kString) {
      list.strings.push_back(value.a);
    } else {
      list.mixed = true;
      heap_.drop(elements[i]);
    }
  }
  return true;
}

bool Machine::appends() {
  if (marks_.empty()) return refuse(Code::kMetadataCorrupt, ": no MARK on the stack");
  const std::uint32_t height = marks_.back().heap_height;
  std::size_t first = 0;
  if (!close_mark(first)) return false;
  if (first == fence_)
    return refuse(Code::kMetadataCorrupt, ": found an empty stack, expected a list");
  if (!append_all(stack_[first - 1], std::span(stack_).subspan(first))) return false;
  stack_.resize(first);
  heap_.cut(height);
  return true;
}

bool Machine::set_pair(const Cell& target, const Cell& key, const Cell& value) {
  if (target.tag == Tag::kDict) return store_pair(target.a, key, value);
  heap_.drop(key);
  heap_.drop(value);
  return true;
}

bool Machine::set_items() {
  if (marks_.empty()) return refuse(Code::kMetadataCorrupt, ": no MARK on the stack");
  const std::uint32_t height = marks_.back().heap_height;
  std::size_t first = 0;
  if (!close_mark(first)) return false;
  if (first == fence_)
    return refuse(Code::kMetadataCorrupt, ": found an empty stack, expected a dict");
  if ((stack_.size() - first) % 2 != 0) {
    return refuse(Code::kMetadataCorrupt, ": found a key without a value");
  }
  const Cell target = stack_[first - 1];
  stored_in_slot_ = false;
  for (std::size_t i = first; i < stack_.size(); i += 2) {
    if (!set_pair(target, stack_[i], stack_[i + 1])) return false;
  }
  stack_.resize(first);
  // Values that went into slots still need their integers.
  if (!stored_in_slot_) heap_.cut(height);
  return true;
}

bool Machine::rare(const Token& token) {
  switch (token.op) {
    case Op::kProto:
    case Op::kFrame:
      return true;
    case Op::kLong1:
    case Op::kLong4:
      return push_bytes_as_int(token.text);
    case Op::kBinUnicode8:
      return push_string(token.text);
    case Op::kBinBytes:
    case Op::kShortBinBytes:
    case Op::kBinBytes8:
    case Op::kByteArray8:
      audit_.merge(pickle::audit_bytes(token.text));
      if (token.text.size() == sizeof(std::int64_t)) {
        Cell bytes = int_cell(load_le<std::int64_t>(as_bytes(token.text).data()));
        bytes.tag = Tag::kEightBytes;
        return push(bytes);
      }
      return push({});
    case Op::kBinFloat:
    case Op::kEmptySet:
      return push({});
    case Op::kGlobal:
      return push_global(token.text, token.second);
    case Op::kBinPut:
    case Op::kLongBinPut:
    case Op::kPut:
      return memoize(static_cast<std::uint64_t>(token.number));
    case Op::kGet:
      return fetch(static_cast<std::uint64_t>(token.number));
    case Op::kAddItems:
    case Op::kFrozenSet: {
      std::size_t first = 0;
      if (!close_mark(first)) return false;
      for (std::size_t i = first; i < stack_.size(); ++i) heap_.drop(stack_[i]);
      stack_.resize(first);
      return token.op == Op::kAddItems ? has(1) : push({});
    }
    case Op::kDup:
      if (!has(1)) return false;
      stack_.back() = heap_.keep(stack_.back());
      return push(stack_.back());
    case Op::kInst:
      static_cast<void>(push_global(token.text, token.second));
      return refuse_opcode(token);
    case Op::kExt1:
    case Op::kExt2:
    case Op::kExt4:
      audit_.runs.insert(pickle::extension_text(token.number));
      return refuse_opcode(token);
    default:
      return refuse_opcode(token);
  }
}

bool Machine::refuse_opcode(const Token& token) {
  return refuse(Code::kPickleUnsupported,
                translated(": found opcode {:#04x}, expected one that .metadata files use",
                           static_cast<unsigned>(token.op)));
}

bool Machine::step(const Token& token) {
  switch (token.op) {
    case Op::kBinGet:
    case Op::kLongBinGet:
      return fetch_and_begin_object(static_cast<std::uint64_t>(token.number));
    case Op::kBinInt1:
    case Op::kBinInt2:
    case Op::kBinInt:
      return push(int_cell(token.number));
    case Op::kMemoize:
      return memoize(memo_size_);
    case Op::kShortBinUnicode:
    case Op::kBinUnicode:
      return push_string(token.text);
    case Op::kTuple1:
    case Op::kTuple2:
    case Op::kTuple3:
      return small_tuple(static_cast<std::size_t>(token.op) -
                         static_cast<std::size_t>(Op::kTuple1) + 1);
    case Op::kTuple: {
      std::size_t first = 0;
      return close_mark(first) && tuple(first);
    }
    case Op::kEmptyTuple:
      return push({Tag::kDims});
    case Op::kReduce:
      return reduce();
    case Op::kNewObj:
      return new_object();
    case Op::kEmptyDict:
      return empty_dict();
    case Op::kEmptyList:
      return empty_list();
    case Op::kMark:
      return open_mark();
    case Op::kSetItems:
      return set_items();
    case Op::kSetItem: {
      if (!has(3)) return false;
      const Cell value = pop();
      const Cell key = pop();
      return set_pair(stack_.back(), key, value);
    }
    case Op::kAppends:
      return appends();
    case Op::kAppend: {
      if (!has(2)) return false;
      const Cell element = pop();
      return append_all(stack_.back(), std::span(&element, 1));
    }
    case Op::kBuild:
      return build();
    case Op::kNone:
      return push({Tag::kNone});
    case Op::kNewTrue:
    case Op::kNewFalse:
      return push({});
    case Op::kStackGlobal:
      return stack_global();
    default:
      return rare(token);
  }
}

Result<DcpMetadata> Machine::run() {
  const auto& detour = references_.local_plans;
  Token token;
  while (true) {
    if (!tokens_.next(token)) return std::unexpected(tokens_.error());
    if (token.op == Op::kStop) break;
    if (detour && tokens_.token_position() == detour->begin) {
      tokens_.go_to(detour->end);
      memo_size_ = detour->memo_size_at_end;
      if (!push({})) return std::unexpected(*error_);
      continue;
    }
    if (!step(token)) return std::unexpected(*error_);
  }
  if (stack_.size() != 1 || !marks_.empty()) {
    return fail(Code::kMetadataCorrupt, ": found {} values at STOP, expected one", stack_.size());
  }
  audit_.trailing_bytes = tokens_.input_size() - tokens_.position();
  return finish(heap_.resolve(stack_.back()));
}

}  // namespace shardwright::dcp
