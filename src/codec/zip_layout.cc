// SPDX-License-Identifier: Apache-2.0
#include "codec/zip_layout.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/zip_format.h"

namespace shardwright::zip {
namespace {

constexpr std::uint32_t kMaxAlignment = 32768;  // the padding's length has 16 bits
constexpr std::size_t kMaxNameBytes = 65535;
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();
// miniz's identification in the zip64 end record: made on Unix by version 3.0, needs version 4.5.
constexpr std::uint16_t kEnd64MadeBy = 0x031e;
constexpr std::uint16_t kEnd64Needed = 0x002d;

std::uint32_t low32(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kIn64));
}

Status check_record(const Record& record) {
  if (record.name.empty() || record.alignment == 0 || record.alignment > kMaxAlignment) {
    return fail(Code::kUsage, "record '{}': found alignment {}, expected 1 to {} and a name",
                record.name, record.alignment, kMaxAlignment);
  }
  if (record.name.size() > kMaxNameBytes) {
    return fail(Code::kLimit, "record: found a name of {} bytes, expected at most {}",
                record.name.size(), kMaxNameBytes);
  }
  return {};
}

}  // namespace

Result<Layout> Layout::make(std::vector<Record> records, std::uint64_t base) {
  Layout layout;
  layout.records_ = std::move(records);
  std::unordered_set<std::string_view> names;
  std::uint64_t position = 0;
  std::uint64_t directory_bytes = 0;
  for (std::size_t index = 0; index < layout.records_.size(); ++index) {
    const Record& record = layout.records_[index];
    SW_TRY(check_record(record));
    if (!names.insert(record.name).second) {
      return fail(Code::kUsage, "record '{}': the archive would hold it twice", record.name);
    }
    layout.headers_.push_back(position);
    const auto least =
        checked_add<std::uint64_t>(base, position + kLocalBytes + record.name.size() +
                                             layout.zip64_bytes(index) + kExtraHeaderBytes);
    const std::uint64_t room = kMaxBytes - kMaxAlignment - kDescriptor64Bytes;
    if (!least || *least > room || record.bytes > room - *least) {
      return fail(Code::kLimit,
                  "record '{}' would end beyond {} bytes, the most that a file can have",
                  record.name, kMaxBytes);
    }
    const std::uint64_t payload = round_up<std::uint64_t>(*least, record.alignment) - base;
    layout.payloads_.push_back(payload);
    position = payload + record.bytes + layout.descriptor_bytes(index);
    directory_bytes += kCentralBytes + record.name.size() + layout.zip64_bytes(index);
  }
  layout.directory_ = position;
  layout.total_ = position + directory_bytes + kEnd64Bytes + kLocatorBytes + kEndBytes;
  return layout;
}

bool Layout::has_wide_size(std::size_t index) const { return records_[index].bytes >= kIn64; }

bool Layout::has_wide_offset(std::size_t index) const { return headers_[index] >= kIn64; }

std::size_t Layout::zip64_bytes(std::size_t index) const {
  const std::size_t contents =
      (has_wide_size(index) ? 16U : 0U) + (has_wide_offset(index) ? 8U : 0U);
  return contents == 0 ? 0 : kExtraHeaderBytes + contents;
}

std::size_t Layout::descriptor_bytes(std::size_t index) const {
  if (records_[index].bytes == 0) return 0;
  return zip64_bytes(index) == 0 ? kDescriptorBytes : kDescriptor64Bytes;
}

std::uint16_t Layout::flags(std::size_t index) const {
  const int flags = kFlagUtf8 | (records_[index].bytes == 0 ? 0 : kFlagDescriptor);
  return static_cast<std::uint16_t>(flags);
}

void Layout::append_zip64(std::size_t index, std::uint64_t stored_bytes, std::string& out) const {
  const std::size_t bytes = zip64_bytes(index);
  if (bytes == 0) return;
  append_le(out, kExtraZip64);
  append_le(out, static_cast<std::uint16_t>(bytes - kExtraHeaderBytes));
  if (has_wide_size(index)) {
    append_le(out, records_[index].bytes);
    append_le(out, stored_bytes);
  }
  if (has_wide_offset(index)) append_le(out, headers_[index]);
}

void Layout::append_header(std::size_t index, std::string& out) const {
  const Record& record = records_[index];
  const std::uint64_t extra_bytes =
      payloads_[index] - headers_[index] - kLocalBytes - record.name.size();
  append_le(out, kLocalSignature);
  append_le(out, std::uint16_t{0});  // version needed: torch leaves it 0
  append_le(out, flags(index));
  append_le(out, kStored);
  append_le(out, std::uint32_t{0});  // time and date: no two saves of the same content differ
  append_le(out, std::uint32_t{0});  // CRC, then sizes: in the descriptor
  append_le(out, std::uint64_t{0});
  append_le(out, static_cast<std::uint16_t>(record.name.size()));
  append_le(out, static_cast<std::uint16_t>(extra_bytes));
  out += record.name;
  append_zip64(index, 0, out);
  const std::uint64_t padding = extra_bytes - zip64_bytes(index) - kExtraHeaderBytes;
  append_le(out, kExtraPadding);
  append_le(out, static_cast<std::uint16_t>(padding));
  out.append(padding, 'Z');
}

void Layout::append_descriptor(std::size_t index, std::uint32_t crc, std::string& out) const {
  const std::size_t bytes = descriptor_bytes(index);
  if (bytes == 0) return;
  append_le(out, kDescriptorSignature);
  append_le(out, crc);
  const std::uint64_t size = records_[index].bytes;
  for (int repeat = 0; repeat < 2; ++repeat) {  // compressed and not: the same
    if (bytes == kDescriptor64Bytes) {
      append_le(out, size);
    } else {
      append_le(out, static_cast<std::uint32_t>(size));
    }
  }
}

void Layout::append_directory(std::span<const std::uint32_t> crcs, std::string& out) const {
  const std::size_t begin = out.size();
  for (std::size_t index = 0; index < records_.size(); ++index) {
    const Record& record = records_[index];
    append_le(out, kCentralSignature);
    append_le(out, std::uint32_t{0});  // versions made by and needed
    append_le(out, flags(index));
    append_le(out, kStored);
    append_le(out, std::uint32_t{0});  // time and date
    append_le(out, crcs[index]);
    append_le(out, low32(record.bytes));
    append_le(out, low32(record.bytes));
    append_le(out, static_cast<std::uint16_t>(record.name.size()));
    append_le(out, static_cast<std::uint16_t>(zip64_bytes(index)));
    append_le(out, std::uint32_t{0});  // comment length, disk
    append_le(out, std::uint16_t{0});  // internal attributes
    append_le(out, std::uint32_t{0});  // external attributes
    append_le(out, low32(headers_[index]));
    out += record.name;
    append_zip64(index, record.bytes, out);
  }
  const std::uint64_t directory_bytes = out.size() - begin;
  const std::uint64_t count = records_.size();
  append_le(out, kEnd64Signature);
  append_le(out, std::uint64_t{kEnd64Bytes - 12});
  append_le(out, kEnd64MadeBy);
  append_le(out, kEnd64Needed);
  append_le(out, std::uint64_t{0});  // disks
  append_le(out, count);
  append_le(out, count);
  append_le(out, directory_bytes);
  append_le(out, directory_);
  append_le(out, kLocatorSignature);
  append_le(out, std::uint32_t{0});  // disk
  append_le(out, directory_ + directory_bytes);
  append_le(out, std::uint32_t{1});  // disks
  append_le(out, kEndSignature);
  append_le(out, std::uint32_t{0});  // disks
  const auto short_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kIn64Short));
  append_le(out, short_count);
  append_le(out, short_count);
  append_le(out, low32(directory_bytes));
  append_le(out, low32(directory_));
  append_le(out, std::uint16_t{0});  // comment
}

}  // namespace shardwright::zip
