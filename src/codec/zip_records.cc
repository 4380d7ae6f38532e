// SPDX-License-Identifier: Apache-2.0
// What an archive's local headers say, and the contents behind them.
#include <libdeflate.h>

#include <algorithm>
#include <memory>

#include "base/crc32.h"
#include "base/fail.h"
#include "codec/read_into.h"
#include "codec/zip_fields.h"
#include "codec/zip_reader.h"

namespace shardwright::zip {
namespace {

/// Extra bytes that a local header usually has at most: padding to 64 bytes and a zip64 field.
constexpr std::uint64_t kUsualExtraBytes = 128;

bool has_zip64(std::string_view header, std::size_t name_bytes) {
  bool found = false;
  (void)for_each_extra(header.substr(kLocalBytes + name_bytes),
                       [&](std::uint16_t id, std::string_view) {
                         found |= id == kExtraZip64;
                         return true;
                       });
  return found;
}

}  // namespace

Status Archive::check_local(const Entry& entry, std::string_view header) const {
  const auto refuse = [&](std::string_view found) {
    return fail(Code::kZipCorrupt, "{}: found {}, expected what the directory says",
                record_name(entry), found);
  };
  if (header.substr(kLocalBytes, entry.name.size()) != entry.name) {
    return refuse("another name in the local header");
  }
  if (field<std::uint16_t>(header, 6) != entry.flags ||
      field<std::uint16_t>(header, 8) != entry.method) {
    return refuse("other flags or another method in the local header");
  }
  const auto crc = field<std::uint32_t>(header, 14);
  const auto stored = field<std::uint32_t>(header, 18);
  const auto bytes = field<std::uint32_t>(header, 22);
  if ((entry.flags & kFlagDescriptor) == 0) {
    if (crc != entry.crc || !fits_or_is_in_64(stored, kIn64, entry.stored_bytes) ||
        !fits_or_is_in_64(bytes, kIn64, entry.bytes)) {
      return refuse("another CRC or size in the local header");
    }
  } else if ((crc != 0 && crc != entry.crc) ||
             (stored != 0 && !fits_or_is_in_64(stored, kIn64, entry.stored_bytes)) ||
             (bytes != 0 && !fits_or_is_in_64(bytes, kIn64, entry.bytes))) {
    return refuse("another CRC or size in the local header");
  }
  const bool late = (entry.flags & kFlagDescriptor) != 0;
  const auto agrees = [&](std::uint32_t narrow, std::uint64_t wide, std::uint64_t value) {
    return narrow != kIn64 || wide == value || (late && wide == 0);
  };
  const auto extra = header.substr(kLocalBytes + entry.name.size());
  const bool whole = for_each_extra(extra, [&](std::uint16_t id, std::string_view contents) {
    if (id != kExtraZip64 || contents.size() < 2 * sizeof(std::uint64_t)) return true;
    return agrees(bytes, field<std::uint64_t>(contents, 0), entry.bytes) &&
           agrees(stored, field<std::uint64_t>(contents, sizeof(std::uint64_t)),
                  entry.stored_bytes);
  });
  if (!whole) return refuse("broken extra fields in the local header");
  return {};
}

// Where a payload begins only the local header says, so a wrong length in it moves the payload. It
// moves the end as well: between that and the next header there is a data descriptor or nothing.
Status Archive::check_end(const Entry& entry, std::string_view header, std::uint64_t behind) const {
  const bool late = (entry.flags & kFlagDescriptor) != 0;
  const bool is_wide = entry.bytes >= kIn64 || entry.stored_bytes >= kIn64 ||
                       entry.header_offset >= kIn64 || has_zip64(header, entry.name.size());
  const std::uint64_t due = !late ? 0 : is_wide ? kDescriptor64Bytes : kDescriptorBytes;
  // Some writers leave a descriptor's signature out.
  if (behind == due || (late && behind == due - sizeof(kDescriptorSignature))) return {};
  return fail(Code::kZipCorrupt,
              "{}: {} bytes lie between its end and the next header, expected {}; its local header "
              "has wrong lengths or is not its own",
              record_name(entry), behind, due);
}

Result<std::optional<ByteRange>> Archive::locate_in(const Entry& entry, std::string_view bytes,
                                                    std::uint64_t offset) const {
  if (entry.header_offset < offset || entry.header_offset - offset > bytes.size()) {
    return std::nullopt;
  }
  bytes.remove_prefix(entry.header_offset - offset);
  if (bytes.size() < kLocalBytes) return std::nullopt;
  if (field<std::uint32_t>(bytes, 0) != kLocalSignature) {
    return fail(Code::kZipCorrupt, "{}: no local header where the directory says",
                record_name(entry));
  }
  const std::uint64_t header_bytes = kLocalBytes + std::uint64_t{field<std::uint16_t>(bytes, 26)} +
                                     field<std::uint16_t>(bytes, 28);
  const std::uint64_t limit = end_of(entry);
  if (field<std::uint16_t>(bytes, 26) != entry.name.size() ||
      header_bytes > limit - entry.header_offset) {
    return fail(Code::kZipCorrupt, "{}: found a local header of {} bytes, expected its name of {}",
                record_name(entry), header_bytes, entry.name.size());
  }
  if (bytes.size() < header_bytes) return std::nullopt;
  SW_TRY(check_local(entry, bytes.substr(0, header_bytes)));
  const std::uint64_t payload = entry.header_offset + header_bytes;
  if (entry.stored_bytes > limit - payload) {
    return fail(Code::kZipCorrupt, "{}: found {} bytes from {}, expected it to end before {}",
                record_name(entry), entry.stored_bytes, payload, limit);
  }
  SW_TRY(check_end(entry, bytes.substr(0, header_bytes), limit - payload - entry.stored_bytes));
  return ByteRange{window_.offset + payload, entry.stored_bytes};
}

Result<ByteRange> Archive::locate(const Entry& entry) const {
  const std::uint64_t limit = end_of(entry);
  const std::uint64_t available = limit - entry.header_offset;
  std::string header(std::min(available, kLocalBytes + entry.name.size() + kUsualExtraBytes), '\0');
  SW_TRY(read_into(*file_, window_.offset + entry.header_offset, header));
  auto location = SW_TRY(locate_in(entry, header, entry.header_offset));
  if (location) return *location;
  const std::uint64_t header_bytes =
      kLocalBytes + entry.name.size() + field<std::uint16_t>(header, 28);
  header.resize(std::min(available, header_bytes));
  SW_TRY(read_into(*file_, window_.offset + entry.header_offset, header));
  location = SW_TRY(locate_in(entry, header, entry.header_offset));
  if (location) return *location;
  return fail(Code::kZipCorrupt, "{}: the local header is cut off", record_name(entry));
}

Result<std::string> Archive::unpack(const Entry& entry, std::string_view stored) const {
  std::string bytes;
  if (entry.method == kStored) {
    bytes = stored;
  } else {
    bytes.resize(entry.bytes);
    const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater(
        libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
    std::size_t produced = 0;
    if (!inflater ||
        libdeflate_deflate_decompress(inflater.get(), stored.data(), stored.size(), bytes.data(),
                                      bytes.size(), &produced) != LIBDEFLATE_SUCCESS ||
        produced != bytes.size()) {
      return fail(Code::kZipCorrupt, "{}: found compressed bytes that don't give {} bytes",
                  record_name(entry), entry.bytes);
    }
  }
  const std::uint32_t crc = crc32(as_bytes(bytes));
  if (entry.crc == 0 || entry.crc == crc) return bytes;
  return fail(Code::kZipCorrupt,
              "{}: found CRC-32 {:08x} of its bytes, expected {:08x}; the file is damaged, copy it "
              "again from its source",
              record_name(entry), crc, entry.crc);
}

Result<std::string> Archive::read(const Entry& entry, std::uint64_t limit_bytes) const {
  if (std::max(entry.bytes, entry.stored_bytes) > limit_bytes) {
    return fail(Code::kLimit, "{}: found {} bytes, expected at most {}", record_name(entry),
                std::max(entry.bytes, entry.stored_bytes), limit_bytes);
  }
  const ByteRange payload = SW_TRY(locate(entry));
  std::string stored(payload.length, '\0');
  SW_TRY(read_into(*file_, payload.offset, stored));
  return unpack(entry, stored);
}

}  // namespace shardwright::zip
