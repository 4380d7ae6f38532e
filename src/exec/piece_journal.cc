// SPDX-License-Identifier: Apache-2.0
#include "exec/piece_journal.h"

#include <charconv>
#include <string_view>

#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kFirstLine = "shardwright journal 1\n";
// A record: piece, count of CRC-32s, the CRC-32s, the CRC-32 of all this.
constexpr std::size_t kFixedBytes = 12;
// Stands for the piece in a record that says that none will follow.
constexpr std::uint32_t kEnd = 0xffffffff;
constexpr std::uint64_t kMostJournalBytes = std::uint64_t{1} << 30;

// The value of the line `name value` that `text` begins with, which is taken off.
std::optional<std::string> take_line(std::string_view& text, std::string_view name) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name) || end <= name.size() ||
      text[name.size()] != ' ') {
    return std::nullopt;
  }
  const std::string value(text.substr(name.size() + 1, end - name.size() - 1));
  text.remove_prefix(end + 1);
  return value;
}

std::optional<std::uint64_t> journal_number(const std::optional<std::string>& text) {
  std::uint64_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::string head_text(const JournalHead& head) {
  return fmt::format("{}version {}\nsource {}\nplan {}\npiece_bytes {}\n\n", kFirstLine,
                     head.version, head.source, head.plan, head.piece_bytes);
}

}  // namespace

Result<std::unique_ptr<PieceJournal>> PieceJournal::begin(const std::string& path,
                                                          const JournalHead& head) {
  std::unique_ptr<PieceJournal> journal(new PieceJournal(SW_TRY(AppendFile::open(path))));
  SW_TRY(journal->file_->append(as_bytes(head_text(head))));
  return journal;
}

Result<std::unique_ptr<PieceJournal>> PieceJournal::resume(const std::string& path,
                                                           std::uint64_t whole_bytes) {
  std::unique_ptr<PieceJournal> journal(new PieceJournal(SW_TRY(AppendFile::open(path))));
  SW_TRY(journal->cut(whole_bytes));
  return journal;
}

Result<std::unique_ptr<PieceJournal>> PieceJournal::hold(const std::string& path) {
  std::unique_ptr<PieceJournal> journal(new PieceJournal(SW_TRY(AppendFile::open(path))));
  if (journal->file_->lock()) return journal;
  return fail(Code::kTargetExists, "{}: another process works on this now; wait for it", path);
}

Status PieceJournal::restart(const JournalHead& head) const {
  SW_TRY(file_->truncate(0));
  return file_->append(as_bytes(head_text(head)));
}

Status PieceJournal::cut(std::uint64_t whole_bytes) const { return file_->truncate(whole_bytes); }

Status PieceJournal::add(std::uint32_t piece, const PieceCrcs& crcs) const {
  std::string record;
  record.reserve(kFixedBytes + 4 * crcs.size());
  append_le(record, piece);
  append_le(record, static_cast<std::uint32_t>(crcs.size()));
  for (const std::uint32_t crc : crcs) append_le(record, crc);
  append_le(record, crc32(as_bytes(record)));
  return file_->append(as_bytes(record));
}

Status PieceJournal::end() const {
  SW_TRY(add(kEnd, {}));
  return file_->sync();
}

Result<ReadJournal> read_journal(const Directory& folder, std::string_view name) {
  const std::string text = SW_TRY(read_whole(folder, name, kMostJournalBytes));
  const auto malformed = [&] {
    return fail(Code::kCannotResume, "{}/{}: this is not a journal that this program knows",
                folder.name(), name);
  };
  if (!text.starts_with(kFirstLine)) return malformed();
  std::string_view rest = std::string_view(text).substr(kFirstLine.size());
  const auto version = take_line(rest, "version");
  const auto source = take_line(rest, "source");
  const auto plan = take_line(rest, "plan");
  const auto piece_bytes = journal_number(take_line(rest, "piece_bytes"));
  if (!version || !source || !plan || !piece_bytes || !rest.starts_with('\n')) return malformed();
  rest.remove_prefix(1);
  return ReadJournal{{*version, *source, *plan, *piece_bytes},
                     std::string(rest),
                     static_cast<std::uint64_t>(text.size() - rest.size())};
}

JournalledPieces journalled_pieces(const ReadJournal& journal, const PieceList& pieces) {
  JournalledPieces found;
  found.finished.resize(pieces.size());
  found.whole_bytes = journal.head_bytes;
  std::string_view rest = journal.records;
  while (rest.size() >= kFixedBytes) {
    const std::byte* bytes = as_bytes(rest).data();
    const auto piece = load_le<std::uint32_t>(bytes);
    const auto count = load_le<std::uint32_t>(bytes + 4);
    const bool is_end = piece == kEnd && count == 0;
    if (piece >= pieces.size() && !is_end) break;
    if (count > (rest.size() - kFixedBytes) / 4) break;
    const std::size_t summed = 8 + 4 * static_cast<std::size_t>(count);
    if (load_le<std::uint32_t>(bytes + summed) != crc32(as_bytes(rest.substr(0, summed)))) break;
    rest.remove_prefix(summed + 4);
    found.has_end = is_end;
    if (is_end) continue;
    PieceCrcs crcs;
    crcs.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      crcs.push_back(load_le<std::uint32_t>(bytes + 8 + 4 * i));
    }
    found.finished[piece] = std::move(crcs);
    found.whole_bytes = journal.head_bytes + journal.records.size() - rest.size();
  }
  return found;
}

}  // namespace shardwright
