// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "base/endian.h"
#include "dcp/dcp_machine.h"

// Nearly all of a big `.metadata` is three kinds of objects, and CPython writes each object of a
// kind with the same opcodes. They are read here in one go; whatever differs in the least (another
// order of attributes, a memo slot that is fetched later, too few bytes at hand) is left to the
// general machine, which gives the same result. Our own writer's form, the same without the
// needless memo slots, is read so too.
namespace shardwright::dcp {

using pickle::Op;

/// Opcodes as bytes. A read that does not fit marks the reader as failed.
class RawReader {
 public:
  /// REQUIRES: at least kLongestObject bytes, so that no read needs a bounds check.
  explicit RawReader(std::span<const std::byte> bytes) : begin_(bytes.data()), at_(bytes.data()) {}

  static constexpr std::size_t kLongestObject = 1024;

  [[nodiscard]] std::size_t used() const { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] std::uint32_t puts() const { return puts_; }
  [[nodiscard]] Op peek() const { return static_cast<Op>(*at_); }
  template <std::size_t N>
  [[nodiscard]] bool run(const char (&bytes)[N], std::uint32_t puts) {
    if (std::memcmp(at_, bytes, N - 1) != 0) return false;
    at_ += N - 1;
    puts_ += puts;
    return true;
  }
  [[nodiscard]] bool op(Op expected) {
    if (static_cast<Op>(*at_) != expected) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] bool slot(std::uint32_t& number) {
    if (static_cast<Op>(*at_) == Op::kLongBinGet) {
      number = load_le<std::uint32_t>(at_ + 1);
      at_ += 5;
      return true;
    }
    if (static_cast<Op>(*at_) != Op::kBinGet) return false;
    number = std::to_integer<std::uint32_t>(at_[1]);
    at_ += 2;
    return true;
  }
  [[nodiscard]] bool slot_is(std::uint32_t expected) {
    std::uint32_t number = 0;
    return slot(number) && number == expected;
  }
  [[nodiscard]] bool integer(std::int64_t& value) {
    switch (static_cast<Op>(*at_)) {
      case Op::kBinInt1:
        value = std::to_integer<std::int64_t>(at_[1]);
        at_ += 2;
        return true;
      case Op::kBinInt2:
        value = load_le<std::uint16_t>(at_ + 1);
        at_ += 3;
        return true;
      case Op::kBinInt:
        value = load_le<std::int32_t>(at_ + 1);
        at_ += 5;
        return true;
      case Op::kLong1: {
        const unsigned length = std::to_integer<unsigned>(at_[1]);
        if (length == 0 || length > 8) return false;
        const auto high = load_le<std::uint64_t>(at_ + 2) << (64 - 8 * length);
        value = static_cast<std::int64_t>(high) >> (64 - 8 * length);
        at_ += 2 + length;
        return true;
      }
      default:
        return false;
    }
  }
  [[nodiscard]] bool text(std::string_view& text) {
    if (static_cast<Op>(*at_) != Op::kShortBinUnicode) return false;
    const auto length = std::to_integer<std::size_t>(at_[1]);
    text = {reinterpret_cast<const char*>(at_ + 2), length};
    at_ += 2 + length;
    return true;
  }

 private:
  const std::byte* begin_;
  const std::byte* at_;
  std::uint32_t puts_ = 0;
};

// torch.Size(...): the class, a memoised tuple, its memoised 1-tuple, the memoised call.
bool Machine::fast_size(RawReader& raw, std::uint8_t& axes, std::uint32_t& place) {
  if (!raw.slot_is(size_slot_)) return false;
  std::array<std::int64_t, kMaxAxes> extents;
  std::size_t count = 0;
  const bool marked = raw.op(Op::kMark);
  while (count < extents.size() && raw.integer(extents[count])) ++count;
  const bool closed =
      marked ? count > 3 && raw.op(Op::kTuple)
             : count > 0 && count <= 3 &&
                   raw.op(static_cast<Op>(static_cast<std::size_t>(Op::kTuple1) + count - 1));
  if (!closed || !(raw.run("\x94\x85\x94R\x94", 3) || raw.run("\x85R", 0))) return false;
  axes = static_cast<std::uint8_t>(count);
  place = heap_.add(std::span(extents).first(count));
  return true;
}

bool Machine::fast_string(RawReader& raw, std::uint32_t& id) {
  std::string_view text;
  if (raw.text(text)) {
    static_cast<void>(raw.run("\x94", 1));
    const auto interned = collector_.strings().intern(text);
    if (!interned) return false;
    id = *interned;
    return true;
  }
  std::uint32_t slot = 0;
  if (!raw.slot(slot) || !references_.fetched.contains(slot)) return false;
  const std::size_t rank = references_.fetched.rank(slot);
  if (!memo_set_[rank] || memo_[rank].tag != Tag::kString) return false;
  id = memo_[rank].a;
  return true;
}

bool Machine::fast_chunk(RawReader& raw, Cell& result) {
  result = {Tag::kChunk};
  std::uint8_t axes = 0;
  return raw.slot_is(key_slots_[kOffsets]) && fast_size(raw, result.n, result.a) &&
         raw.slot_is(key_slots_[kSizes]) && fast_size(raw, axes, result.b) && axes == result.n &&
         raw.run("ub", 0);
}

bool Machine::fast_index(RawReader& raw, Cell& result) {
  result = {Tag::kIndex, kNoOffset, 0, 0, 0, kNone32};
  if (!raw.slot_is(key_slots_[kFqn]) || !fast_string(raw, result.a)) return false;
  if (!raw.slot_is(key_slots_[kIndex])) return false;
  std::int64_t hint = 0;
  if (!raw.op(Op::kNone)) {
    if (!raw.integer(hint) || hint < 0 || hint >= kNone32) return false;
    result.c = static_cast<std::uint32_t>(hint);
  }
  if (raw.run("ub", 0)) return true;
  return raw.slot_is(key_slots_[kOffset]) && fast_size(raw, result.n, result.b) && raw.run("ub", 0);
}

bool Machine::fast_info(RawReader& raw, Cell& result) {
  std::array<std::int64_t, 2> range;
  result = {Tag::kInfo, 0, 0, 0, 0, kNone32};
  const bool read = raw.slot_is(key_slots_[kRelativePath]) && fast_string(raw, result.a) &&
                    raw.slot_is(key_slots_[kOffset]) && raw.integer(range[0]) &&
                    raw.slot_is(key_slots_[kLength]) && raw.integer(range[1]);
  if (!read) return false;
  if (raw.peek() != Op::kSetItems &&
      !(raw.slot_is(key_slots_[kTransformDescriptors]) && raw.op(Op::kNone))) {
    return false;
  }
  if (!raw.run("ub", 0)) return false;
  result.b = heap_.add(range);
  return true;
}

bool Machine::fast_object(const Cell& cls) {
  const Class known = static_cast<Class>(cls.n);
  const std::span<const std::byte> bytes = tokens_.ahead();
  if (bytes.size() < RawReader::kLongestObject) return false;
  RawReader raw(bytes);
  if (!raw.run(")\x81\x94}\x94(", 2) && !raw.run(")\x81}(", 0)) return false;
  const std::uint32_t height = heap_.height();
  Cell result;
  bool read = false;
  if (known == Class::kChunkStorage) {
    read = fast_chunk(raw, result);
  } else if (known == Class::kIndex) {
    read = fast_index(raw, result);
  } else if (known == Class::kOther) {
    read = fast_info(raw, result);
  }
  const bool is_fetched =
      raw.puts() != 0 && references_.fetched.contains_any(memo_size_, raw.puts());
  if (!read || is_fetched) {
    heap_.cut(height);
    return false;
  }
  tokens_.skip(raw.used());
  memo_size_ += raw.puts();
  stack_.back() = result;
  return true;
}

}  // namespace shardwright::dcp
