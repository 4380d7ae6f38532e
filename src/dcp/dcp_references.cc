// SPDX-License-Identifier: Apache-2.0
#include "dcp/dcp_references.h"

#include <array>
#include <string_view>

#include "base/endian.h"
#include "base/fail.h"

namespace shardwright::dcp {
namespace {

using pickle::Op;
using pickle::Token;

constexpr std::string_view kLocalPlans = "all_local_plans";

// With these opcodes CPython starts each object that has attributes, behind its class:
// EMPTY_TUPLE NEWOBJ MEMOIZE EMPTY_DICT MEMOIZE MARK.
constexpr std::ptrdiff_t kObjectStart = 6;
bool starts_object(const std::byte* at) {
  return (load_le<std::uint64_t>(at) & 0xffff'ffff'ffff) == 0x2894'7d94'8129;
}

// And with these it ends a torch.Size behind its tuple: MEMOIZE TUPLE1 MEMOIZE REDUCE MEMOIZE.
constexpr std::ptrdiff_t kSizeEnd = 5;
bool ends_size(const std::byte* at) {
  return (load_le<std::uint64_t>(at) & 0xff'ffff'ffff) == 0x94'5294'8594;
}

// Lengths of opcodes that the first pass only steps over; 0 for the others.
constexpr std::array<std::uint8_t, 256> kPlainLengths = [] {
  std::array<std::uint8_t, 256> lengths{};
  for (char opcode : std::string_view(")\x81}RbN\x88\x89]a")) {
    lengths[static_cast<unsigned char>(opcode)] = 1;
  }
  lengths[static_cast<std::size_t>(Op::kBinInt1)] = 2;
  lengths[static_cast<std::size_t>(Op::kBinInt2)] = 3;
  lengths[static_cast<std::size_t>(Op::kBinInt)] = 5;
  return lengths;
}();

class Scanner {
 public:
  Scanner(pickle::Input& input, const pickle::Limits& limits, bool may_skip_plans)
      : tokens_(input, limits), may_skip_(may_skip_plans) {}

  Result<References> run();
  /// The plans were not what they looked like: fetches were lost, scan again without skipping.
  [[nodiscard]] bool must_repeat() const { return must_repeat_; }

 private:
  void skim();
  const std::byte* skim_one(const std::byte* at);
  bool step(const Token& token);
  bool fetch(std::uint64_t slot);
  void see_string(std::string_view text);
  void open_mark() { ++marks_; }
  void close_mark();
  static bool closes_mark(Op op);
  void check_plan_opcode(Op op);
  bool stored(std::uint64_t slot);

  pickle::Tokenizer tokens_;
  bool may_skip_;
  References found_;
  std::uint64_t memo_size_ = 0;
  std::uint64_t marks_ = 0;
  bool in_plans_ = false;
  bool must_repeat_ = false;
  std::optional<Error> error_;
};

bool Scanner::stored(std::uint64_t slot) {
  // As the general decoder: picklers count slots up from 0 (or 1).
  if (slot > 2 * memo_size_ + 1024) {
    error_ = Error{Code::kLimit,
                   translated("pickle@{}: found memo slot {}, expected one near {}",
                              tokens_.token_position(), slot, memo_size_),
                   0};
    return false;
  }
  ++memo_size_;
  return true;
}

bool Scanner::fetch(std::uint64_t slot) {
  if (in_plans_) return true;
  if (slot > 2 * memo_size_ + 1024) {
    error_ = Error{Code::kPickleCorrupt,
                   translated("pickle@{}: found a use of memo slot {}, which was never set",
                              tokens_.token_position(), slot),
                   0};
    return false;
  }
  found_.fetched.add(slot);
  return true;
}

void Scanner::see_string(std::string_view text) {
  // One open mark: we are between the attributes of the outermost object.
  if (!may_skip_ || marks_ != 1 || in_plans_ || text != kLocalPlans) return;
  in_plans_ = true;
  found_.local_plans.emplace();
}

void Scanner::close_mark() {
  if (marks_ > 0) --marks_;
  if (in_plans_ && marks_ == 0) in_plans_ = false;
}

// At the depth of the attributes only a list and its batches may follow the key; a further
// attribute behind it, or anything that moves marks in unusual ways, makes skipping unsafe.
void Scanner::check_plan_opcode(Op op) {
  const bool closes_by_appending = op == Op::kAppends;
  if (op == Op::kDup || op == Op::kPop || op == Op::kPopMark) must_repeat_ = true;
  if (marks_ == 2 && closes_mark(op) && !closes_by_appending) must_repeat_ = true;
  if (marks_ != 1) return;
  switch (op) {
    case Op::kEmptyList:
    case Op::kNone:
      if (found_.local_plans->begin != 0) must_repeat_ = true;
      found_.local_plans->begin = tokens_.token_position();
      break;
    case Op::kMemoize:
    case Op::kBinPut:
    case Op::kLongBinPut:
    case Op::kPut:
    case Op::kMark:
    case Op::kFrame:
      break;
    case Op::kSetItems:
      found_.local_plans->end = tokens_.token_place();
      found_.local_plans->memo_size_at_end = memo_size_;
      if (found_.local_plans->begin == 0) must_repeat_ = true;
      break;
    default:
      must_repeat_ = true;
  }
}

bool Scanner::closes_mark(Op op) {
  switch (op) {
    case Op::kTuple:
    case Op::kList:
    case Op::kDict:
    case Op::kAppends:
    case Op::kSetItems:
    case Op::kAddItems:
    case Op::kFrozenSet:
    case Op::kObj:
    case Op::kInst:
    case Op::kPopMark:
      return true;
    default:
      return false;
  }
}

// The same as step() for the usual opcodes, as long as there are bytes at hand for any of them and
// the attributes of the outermost object are not reached.
void Scanner::skim() {
  constexpr std::ptrdiff_t kLongest = 2 + 255 + 8;
  const std::span<const std::byte> bytes = tokens_.ahead();
  const std::byte* const end = bytes.data() + bytes.size();
  const std::byte* at = bytes.data();
  while (end - at > kLongest) {
    const std::ptrdiff_t plain = kPlainLengths[std::to_integer<std::size_t>(*at)];
    const std::byte* const next = plain != 0 ? at + plain : skim_one(at);
    if (next == nullptr) break;
    at = next;
  }
  tokens_.skip(static_cast<std::size_t>(at - bytes.data()));
}

// One opcode that concerns slots or marks, or that carries a text; where it ends, or nothing if it
// needs step().
const std::byte* Scanner::skim_one(const std::byte* at) {
  const Op op = static_cast<Op>(*at);
  switch (op) {
    case Op::kMemoize:
      ++memo_size_;
      return at + 1;
    case Op::kBinGet:
    case Op::kLongBinGet: {
      const bool is_long = op == Op::kLongBinGet;
      const std::uint64_t slot =
          is_long ? load_le<std::uint32_t>(at + 1) : std::to_integer<std::uint64_t>(at[1]);
      if (slot > 2 * memo_size_ + 1024) return nullptr;
      if (!in_plans_) found_.fetched.add(slot);
      at += is_long ? 5 : 2;
      if (!starts_object(at)) return at;
      memo_size_ += 2;
      open_mark();
      return at + kObjectStart;
    }
    case Op::kTuple1:
    case Op::kTuple2:
    case Op::kTuple3:
      if (!ends_size(at + 1)) return at + 1;
      memo_size_ += 3;
      return at + 1 + kSizeEnd;
    case Op::kLong1:
    case Op::kShortBinUnicode:
      return at + 2 + std::to_integer<std::ptrdiff_t>(at[1]);
    case Op::kMark:
      open_mark();
      return at + 1;
    case Op::kSetItems:
    case Op::kTuple:
      if (marks_ <= 2) return nullptr;
      close_mark();
      return at + 1;
    default:
      return nullptr;
  }
}

bool Scanner::step(const Token& token) {
  if (in_plans_) check_plan_opcode(token.op);
  switch (token.op) {
    case Op::kMemoize:
      ++memo_size_;
      return true;
    case Op::kBinPut:
    case Op::kLongBinPut:
    case Op::kPut:
      return stored(static_cast<std::uint64_t>(token.number));
    case Op::kBinGet:
    case Op::kLongBinGet:
    case Op::kGet:
      return fetch(static_cast<std::uint64_t>(token.number));
    case Op::kShortBinUnicode:
    case Op::kBinUnicode:
      see_string(token.text);
      return true;
    case Op::kMark:
      open_mark();
      return true;
    case Op::kPop:
    case Op::kDup:
      // May take a mark: then the depth is no longer known.
      may_skip_ = false;
      return true;
    default:
      if (closes_mark(token.op)) close_mark();
      return true;
  }
}

Result<References> Scanner::run() {
  Token token;
  do {
    if (marks_ > 1) skim();
    if (!tokens_.next(token)) return std::unexpected(tokens_.error());
    if (!step(token)) return std::unexpected(std::move(*error_));
  } while (token.op != Op::kStop);
  if (in_plans_) must_repeat_ = true;
  found_.fetched.count();
  return std::move(found_);
}

}  // namespace

void FetchedSlots::count() {
  before_.resize(words_.size());
  size_ = 0;
  for (std::size_t word = 0; word < words_.size(); ++word) {
    before_[word] = static_cast<std::uint32_t>(size_);
    size_ += count_bits(words_[word]);
  }
}

Result<References> find_references(pickle::Input& input, const pickle::Limits& limits,
                                   bool may_skip_plans) {
  Scanner scanner(input, limits, may_skip_plans);
  References found = SW_TRY(scanner.run());
  if (!scanner.must_repeat()) return found;
  return Scanner(input, limits, false).run();
}

}  // namespace shardwright::dcp
