// SPDX-License-Identifier: Apache-2.0
#include "codec/zip_reader.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/fail.h"
#include "codec/pickle_text.h"
#include "codec/read_into.h"
#include "codec/zip_fields.h"

namespace shardwright::zip {
namespace {

// All that stands behind the directory.
constexpr std::uint64_t kEnds = kEnd64Bytes + kLocatorBytes + kEndBytes;

bool is_plain_name(std::string_view name) {
  if (name.empty() || name.front() == '/' || !pickle::is_utf8(name)) return false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\\') return false;
  }
  while (!name.empty()) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) break;
    name.remove_prefix(slash + 1);
  }
  return true;
}

/// Takes from the extra fields what the 32-bit fields could not hold: sizes and offset move there
/// one by one, in this order. False if they are malformed or missing.
bool read_zip64(std::string_view extra, Entry& entry) {
  std::uint64_t* const wide[] = {&entry.bytes, &entry.stored_bytes, &entry.header_offset};
  const auto wanted = static_cast<std::size_t>(
      std::ranges::count_if(wide, [](const std::uint64_t* value) { return *value == kIn64; }));
  bool seen = false;
  const auto take = [&](std::uint16_t id, std::string_view contents) {
    if (id != kExtraZip64 || wanted == 0) return true;
    if (seen || contents.size() != wanted * sizeof(std::uint64_t)) return false;
    seen = true;
    for (std::uint64_t* value : wide) {
      if (*value != kIn64) continue;
      *value = field<std::uint64_t>(contents, 0);
      contents.remove_prefix(sizeof(std::uint64_t));
    }
    return true;
  };
  return for_each_extra(extra, take) && (seen || wanted == 0);
}

}  // namespace

/// What the end-of-directory records say.
struct Archive::End {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t must_end_at = 0;  // position in the window
};

std::string Archive::at(std::uint64_t offset) const {
  return fmt::format("{}@{}", file_->name(), window_.offset + offset);
}

std::string Archive::record_name(const Entry& entry) const {
  return fmt::format("{} record '{}'", at(entry.header_offset), entry.name);
}

Result<Archive> Archive::open(const ReadableFile& file, ByteRange window, std::uint64_t tail_guess,
                              Limits limits) {
  Archive archive(file, window, limits);
  const auto window_end = checked_add(window.offset, window.length);
  if (!window_end || *window_end > file.size()) {
    return fail(Code::kShortRead,
                "{}@{}: found a file of {} bytes, expected an archive of {} bytes from here; copy "
                "the file again from its source",
                file.name(), window.offset, file.size(), window.length);
  }
  std::string tail(std::min(window.length, std::max(tail_guess, kEnds)), '\0');
  const std::uint64_t tail_offset = window.length - tail.size();
  SW_TRY(read_into(file, window.offset + tail_offset, tail));
  const End end = SW_TRY(archive.parse_end(tail));
  archive.directory_offset_ = end.offset;
  if (end.offset >= tail_offset) {
    const std::string_view bytes(tail);
    SW_TRY(archive.parse_directory(bytes.substr(end.offset - tail_offset, end.bytes), end.count));
  } else {
    std::string bytes(end.bytes, '\0');
    SW_TRY(read_into(file, window.offset + end.offset, bytes));
    SW_TRY(archive.parse_directory(bytes, end.count));
  }
  SW_TRY(archive.index_entries());
  return archive;
}

Status Archive::check_end(const ReadableFile& file, ByteRange window) {
  std::string tail(std::min(window.length, kEnds), '\0');
  SW_TRY(read_into(file, window.offset + window.length - tail.size(), tail));
  SW_TRY(Archive(file, window, {}).parse_end(tail));
  return {};
}

Result<Archive::End> Archive::parse_end(std::string_view tail) const {
  const std::uint64_t end_offset =
      window_.length - std::min<std::uint64_t>(window_.length, kEndBytes);
  if (tail.size() < kEndBytes ||
      field<std::uint32_t>(tail, tail.size() - kEndBytes) != kEndSignature) {
    return fail(Code::kZipCorrupt,
                "{}: no end of a zip directory in the last 22 bytes; the file was cut off or is "
                "no zip archive",
                at(end_offset));
  }
  const std::string_view record = tail.substr(tail.size() - kEndBytes);
  if (field<std::uint16_t>(record, 20) != 0) {
    return fail(Code::kZipUnsupported, "{}: found an archive comment, expected none",
                at(end_offset));
  }
  if (field<std::uint16_t>(record, 4) != 0 || field<std::uint16_t>(record, 6) != 0) {
    return fail(Code::kZipUnsupported, "{}: found a part of several disks, expected one archive",
                at(end_offset));
  }
  const std::uint64_t count_here = field<std::uint16_t>(record, 8);
  End end{field<std::uint16_t>(record, 10), field<std::uint32_t>(record, 12),
          field<std::uint32_t>(record, 16), end_offset};
  const bool has_locator =
      tail.size() >= kEndBytes + kLocatorBytes &&
      field<std::uint32_t>(tail, tail.size() - kEndBytes - kLocatorBytes) == kLocatorSignature;
  if (count_here != end.count) {
    return fail(Code::kZipCorrupt, "{}: found {} and {} as the number of records, expected one",
                at(end_offset), count_here, end.count);
  }
  if (has_locator) SW_TRY(parse_end64(tail, end));
  const auto directory_end = checked_add(end.offset, end.bytes);
  if (!directory_end || *directory_end != end.must_end_at) {
    return fail(Code::kZipCorrupt,
                "{}: found a directory of {} bytes at {}, expected it to end at {}", at(end_offset),
                end.bytes, end.offset, end.must_end_at);
  }
  if (end.count > limits_.entries || end.bytes > limits_.directory_bytes) {
    return fail(Code::kLimit, "{}: found {} records in {} bytes, expected at most {} in {}",
                at(end_offset), end.count, end.bytes, limits_.entries, limits_.directory_bytes);
  }
  if (end.count * kCentralBytes > end.bytes) {
    return fail(Code::kZipCorrupt, "{}: found {} records, expected what fits in {} bytes",
                at(end_offset), end.count, end.bytes);
  }
  return end;
}

Status Archive::parse_end64(std::string_view tail, End& end) const {
  const std::uint64_t locator_offset = window_.length - kEndBytes - kLocatorBytes;
  const auto refuse = [&](std::string_view reason) {
    return fail(Code::kZipCorrupt, "{}: found {}, expected a zip64 end record right before",
                at(locator_offset), reason);
  };
  const std::string_view locator = tail.substr(tail.size() - kEndBytes - kLocatorBytes);
  if (tail.size() < kEnd64Bytes + kLocatorBytes + kEndBytes) return refuse("nothing");
  const std::string_view record =
      tail.substr(tail.size() - kEndBytes - kLocatorBytes - kEnd64Bytes, kEnd64Bytes);
  if (field<std::uint64_t>(locator, 8) != locator_offset - kEnd64Bytes) {
    return refuse(translated("a pointer to {}", field<std::uint64_t>(locator, 8)));
  }
  if (field<std::uint32_t>(record, 0) != kEnd64Signature) return refuse("no signature");
  if (field<std::uint64_t>(record, 4) != kEnd64Bytes - 12) return refuse("another size");
  if (field<std::uint32_t>(locator, 4) != 0 || field<std::uint32_t>(locator, 16) > 1 ||
      field<std::uint32_t>(record, 16) != 0 || field<std::uint32_t>(record, 20) != 0) {
    return refuse("several disks");
  }
  const auto count = field<std::uint64_t>(record, 32);
  const auto bytes = field<std::uint64_t>(record, 40);
  const auto offset = field<std::uint64_t>(record, 48);
  if (field<std::uint64_t>(record, 24) != count ||
      !fits_or_is_in_64(end.count, kIn64Short, count) ||
      !fits_or_is_in_64(end.bytes, kIn64, bytes) || !fits_or_is_in_64(end.offset, kIn64, offset)) {
    return refuse("numbers that contradict the other end record");
  }
  end = {count, bytes, offset, locator_offset - kEnd64Bytes};
  return {};
}

Status Archive::parse_directory(std::string_view bytes, std::uint64_t count) {
  entries_.reserve(count);
  std::size_t position = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::string_view rest = bytes.substr(position);
    if (rest.size() < kCentralBytes || field<std::uint32_t>(rest, 0) != kCentralSignature) {
      return fail(Code::kZipCorrupt, "{}: directory record {} of {} is missing",
                  at(directory_offset_ + position), index, count);
    }
    const std::size_t name_bytes = field<std::uint16_t>(rest, 28);
    const std::size_t extra_bytes = field<std::uint16_t>(rest, 30);
    const std::size_t comment_bytes = field<std::uint16_t>(rest, 32);
    const std::size_t record_bytes = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
    if (record_bytes > rest.size()) {
      return fail(Code::kZipCorrupt,
                  "{}: found a directory record of {} bytes, expected at most {}",
                  at(directory_offset_ + position), record_bytes, rest.size());
    }
    Entry entry;
    entry.name = rest.substr(kCentralBytes, name_bytes);
    if (name_bytes > limits_.name_bytes || !is_plain_name(entry.name)) {
      return fail(Code::kZipCorrupt,
                  "{}: found a record name of {} bytes, expected plain names joined by slashes in "
                  "at most {} bytes",
                  at(directory_offset_ + position), name_bytes, limits_.name_bytes);
    }
    SW_TRY(add_entry(rest.substr(0, kCentralBytes),
                     rest.substr(kCentralBytes + name_bytes, extra_bytes), std::move(entry)));
    position += record_bytes;
  }
  if (position == bytes.size()) return {};
  return fail(Code::kZipCorrupt,
              "{}: found {} bytes behind the last directory record, expected none",
              at(directory_offset_ + position), bytes.size() - position);
}

Status Archive::add_entry(std::string_view record, std::string_view extra, Entry entry) {
  entry.flags = field<std::uint16_t>(record, 8);
  entry.method = field<std::uint16_t>(record, 10);
  entry.crc = field<std::uint32_t>(record, 16);
  entry.stored_bytes = field<std::uint32_t>(record, 20);
  entry.bytes = field<std::uint32_t>(record, 24);
  entry.header_offset = field<std::uint32_t>(record, 42);
  if (!read_zip64(extra, entry)) {
    return fail(Code::kZipCorrupt,
                "{} record '{}': found broken extra fields, expected a zip64 field for what is "
                "beyond 32 bits",
                at(directory_offset_), entry.name);
  }
  constexpr std::uint32_t kMostVersion = 63;  // of the zip format, by its newest specification
  constexpr std::uint32_t kFolderAttribute = 0x10;
  if ((field<std::uint16_t>(record, 6) & 0xff) > kMostVersion) {
    return fail(Code::kZipUnsupported, "{} record '{}' asks for a version of zip that is not there",
                at(directory_offset_), entry.name);
  }
  // torch reads nothing of what is marked so, and says nothing.
  if ((field<std::uint32_t>(record, 38) & kFolderAttribute) != 0 && !entry.name.ends_with('/')) {
    return fail(Code::kZipCorrupt, "{} record '{}' is marked as a folder", at(directory_offset_),
                entry.name);
  }
  if (field<std::uint16_t>(record, 34) != 0) {
    return fail(Code::kZipUnsupported, "{} record '{}' lies on another disk of a split archive",
                at(directory_offset_), entry.name);
  }
  SW_TRY(check_method(entry));
  const bool is_folder = entry.name.ends_with('/');
  if (is_folder && entry.bytes != 0) {
    return fail(Code::kZipCorrupt, "{} record '{}': found {} bytes, expected an empty folder",
                at(directory_offset_), entry.name, entry.bytes);
  }
  if (is_folder) folder_offsets_.push_back(entry.header_offset);
  if (!is_folder) entries_.push_back(std::move(entry));
  return {};
}

Status Archive::check_method(const Entry& entry) const {
  const auto refuse = [&](Code code, std::string_view found, std::string_view expected) {
    return fail(code, "{} record '{}': found {}, expected {}", at(directory_offset_), entry.name,
                found, expected);
  };
  const bool deflated = entry.method == kDeflated;
  const int known = kFlagDescriptor | kFlagUtf8 | (deflated ? kFlagDeflateLevel : 0);
  if ((entry.flags & kFlagEncrypted) != 0) {
    return refuse(Code::kZipUnsupported, "an encrypted record", "a plain one");
  }
  if ((entry.flags & ~known) != 0) {
    return refuse(Code::kZipUnsupported, fmt::format("flags {:#06x}", entry.flags),
                  "only those of data descriptors and UTF-8");
  }
  if (entry.method != kStored && !deflated) {
    return refuse(Code::kZipUnsupported, translated("compression method {}", entry.method),
                  "a stored record");
  }
  if (deflated && entry.bytes > limits_.inflated_bytes) {
    return refuse(Code::kZipUnsupported, translated("{} compressed bytes", entry.bytes),
                  "a stored record; save the file again without compression");
  }
  if (!deflated && entry.bytes != entry.stored_bytes) {
    return refuse(Code::kZipCorrupt,
                  translated("{} stored bytes of {}", entry.stored_bytes, entry.bytes),
                  "the same number");
  }
  return {};
}

Status Archive::index_entries() {
  std::vector<std::uint32_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0U);
  by_name_ = order;
  const auto name_of = [&](std::uint32_t index) -> const std::string& {
    return entries_[index].name;
  };
  std::ranges::sort(by_name_, {}, name_of);
  const auto twin = std::ranges::adjacent_find(by_name_, {}, name_of);
  if (twin != by_name_.end()) {
    return fail(Code::kZipCorrupt, "{}: found the record '{}' twice, expected it once",
                at(directory_offset_), name_of(*twin));
  }
  const auto offset_of = [&](std::uint32_t index) { return entries_[index].header_offset; };
  if (!std::ranges::is_sorted(order, {}, offset_of)) std::ranges::sort(order, {}, offset_of);
  ends_.resize(entries_.size());
  std::ranges::sort(folder_offsets_);
  std::uint64_t next = directory_offset_;
  for (std::size_t i = order.size(); i-- > 0; next = entries_[order[i]].header_offset) {
    const Entry& entry = entries_[order[i]];
    const auto folder = std::ranges::upper_bound(folder_offsets_, entry.header_offset);
    if (folder != folder_offsets_.end()) next = std::min(next, *folder);
    ends_[order[i]] = next;
    const auto payload =
        checked_add<std::uint64_t>(entry.header_offset, kLocalBytes + entry.name.size());
    const auto end = payload ? checked_add(*payload, entry.stored_bytes) : std::nullopt;
    if (end && *end <= next) continue;
    return fail(Code::kZipCorrupt, "{}: found {} bytes, expected it to end before {}",
                record_name(entry), entry.stored_bytes, next);
  }
  if (!folder_offsets_.empty()) next = std::min(next, folder_offsets_.front());
  if (next == 0 || entries_.empty()) return {};
  return fail(Code::kZipCorrupt, "{}: found {} bytes before the first record, expected none", at(0),
              next);
}

const Entry* Archive::find(std::string_view name) const {
  const auto name_of = [&](std::uint32_t index) -> std::string_view {
    return entries_[index].name;
  };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found != by_name_.end() && name_of(*found) == name ? &entries_[*found] : nullptr;
}

}  // namespace shardwright::zip
