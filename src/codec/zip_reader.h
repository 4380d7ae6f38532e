// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright::zip {

/// One record as the central directory tells it.
struct Entry {
  std::string name;
  std::uint64_t header_offset = 0;  ///< of the local header, from the window's start
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  ///< after decompression; equal to stored_bytes when stored
  std::uint32_t crc = 0;    ///< of the decompressed bytes; 0 is also written for "not computed"
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
};

/// What an archive may cost to open.
struct Limits {
  std::uint64_t directory_bytes = std::uint64_t{256} << 20;
  std::uint64_t entries = 1'000'000;
  std::size_t name_bytes = 512;
  std::uint64_t inflated_bytes = std::uint64_t{16} << 20;  ///< of one deflated record
};

/// The directory of one zip archive in the window [offset, offset + length) of a file. Strict: an
/// archive that another reader could understand differently is refused. Accepts what torch's
/// writers have made since 1.6, and stored or small deflated archives of common zip tools: zip64 in
/// every form, data descriptors, any record order. Refuses comments, several disks, encryption,
/// duplicate or odd names, records that overlap or leave gaps. Errors: kZipCorrupt,
/// kZipUnsupported, kLimit. Immutable, so safe for concurrent use; the file must outlive it.
class Archive {
 public:
  /// Reads the directory in two reads, or one when the window's last `tail_guess` bytes hold it.
  [[nodiscard]] static Result<Archive> open(const ReadableFile& file, ByteRange window,
                                            std::uint64_t tail_guess = 4096, Limits limits = {});

  /// Whether the window ends as an archive of its length does: the last record says where the
  /// directory lies, which must lead there. One small read, so a file that was cut, or copied
  /// twice, shows without its directory. Errors: kZipCorrupt, kZipUnsupported, kLimit.
  [[nodiscard]] static Status check_end(const ReadableFile& file, ByteRange window);

  /// In directory order, folders left out.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const Entry* find(std::string_view name) const;
  /// First directory byte, from the window's start.
  [[nodiscard]] std::uint64_t directory_offset() const { return directory_offset_; }

  /// Where the next record, or the directory, begins, from the window's start.
  [[nodiscard]] std::uint64_t end_of(const Entry& entry) const {
    return ends_[static_cast<std::size_t>(&entry - entries_.data())];
  }

  /// Where the stored bytes lie in the file (not in the window). Only the local header tells: one
  /// small read. The header must agree with the directory, and the record must end before the next
  /// one.
  [[nodiscard]] Result<ByteRange> locate(const Entry& entry) const;
  /// locate() on bytes that were read already: `bytes` start at the window's byte `offset`.
  /// nullopt when they don't hold the whole header.
  [[nodiscard]] Result<std::optional<ByteRange>> locate_in(const Entry& entry,
                                                           std::string_view bytes,
                                                           std::uint64_t offset) const;
  /// The decompressed bytes of a record of at most `limit_bytes`; its CRC is checked unless the
  /// directory has none.
  [[nodiscard]] Result<std::string> read(const Entry& entry, std::uint64_t limit_bytes) const;
  /// Decompresses and checks the bytes of a record that were read already.
  [[nodiscard]] Result<std::string> unpack(const Entry& entry, std::string_view stored) const;

  [[nodiscard]] const ReadableFile& file() const { return *file_; }
  [[nodiscard]] ByteRange window() const { return window_; }

 private:
  Archive(const ReadableFile& file, ByteRange window, Limits limits)
      : file_(&file), window_(window), limits_(limits) {}
  struct End;
  [[nodiscard]] Result<End> parse_end(std::string_view tail) const;
  [[nodiscard]] Status parse_end64(std::string_view tail, End& end) const;
  [[nodiscard]] Status parse_directory(std::string_view bytes, std::uint64_t count);
  [[nodiscard]] Status add_entry(std::string_view record, std::string_view extra, Entry entry);
  [[nodiscard]] Status check_method(const Entry& entry) const;
  [[nodiscard]] Status index_entries();
  [[nodiscard]] Status check_local(const Entry& entry, std::string_view header) const;
  [[nodiscard]] Status check_end(const Entry& entry, std::string_view header,
                                 std::uint64_t behind) const;
  [[nodiscard]] std::string at(std::uint64_t offset) const;
  [[nodiscard]] std::string record_name(const Entry& entry) const;

  const ReadableFile* file_;
  ByteRange window_;
  Limits limits_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> folder_offsets_;  // of their headers, sorted
  std::vector<std::uint64_t> ends_;     // per entry: where the next record or the directory begins
  std::vector<std::uint32_t> by_name_;  // indices into entries_, sorted by name
  std::uint64_t directory_offset_ = 0;
};

}  // namespace shardwright::zip
