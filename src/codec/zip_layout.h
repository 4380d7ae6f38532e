// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/error.h"

namespace shardwright::zip {

/// A record to be written, stored.
struct Record {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t alignment = 64;  ///< of the payload; at most 32 KiB
};

/// Where each byte of an archive goes, before any is written. The layout is that of torch's writer
/// (caffe2/serialize/inline_container.cc over miniz): sizes and CRC follow the payload in a
/// descriptor, an `FB` extra field pads each payload to its alignment, zip64 fields appear exactly
/// where a size or offset needs them, the zip64 end record always. CRCs are needed only for the
/// descriptors and the directory, so they can be written last. Offsets count from the archive's
/// start; immutable, safe for concurrent use.
class Layout {
 public:
  /// `base` is the archive's position in its file: payloads are aligned there. Errors: kUsage for
  /// an empty or repeated name, an alignment of 0 or beyond 32 KiB; kLimit for an archive beyond
  /// 2^63 bytes or a name beyond 65,535.
  [[nodiscard]] static Result<Layout> make(std::vector<Record> records, std::uint64_t base = 0);

  [[nodiscard]] const std::vector<Record>& records() const { return records_; }
  [[nodiscard]] std::uint64_t header_offset(std::size_t index) const { return headers_[index]; }
  [[nodiscard]] ByteRange payload(std::size_t index) const {
    return {payloads_[index], records_[index].bytes};
  }
  [[nodiscard]] std::uint64_t directory_offset() const { return directory_; }
  /// Bytes of the whole archive.
  [[nodiscard]] std::uint64_t total_bytes() const { return total_; }

  /// Appends the local header with its padding: it ends where the payload begins.
  void append_header(std::size_t index, std::string& out) const;
  /// Appends what follows the payload, up to the next header: nothing for an empty record.
  void append_descriptor(std::size_t index, std::uint32_t crc, std::string& out) const;
  /// Appends the directory and the end records. REQUIRES: one CRC per record.
  void append_directory(std::span<const std::uint32_t> crcs, std::string& out) const;

 private:
  [[nodiscard]] bool has_wide_size(std::size_t index) const;
  [[nodiscard]] bool has_wide_offset(std::size_t index) const;
  [[nodiscard]] std::size_t zip64_bytes(std::size_t index) const;
  [[nodiscard]] std::size_t descriptor_bytes(std::size_t index) const;
  [[nodiscard]] std::uint16_t flags(std::size_t index) const;
  void append_zip64(std::size_t index, std::uint64_t stored_bytes, std::string& out) const;

  std::vector<Record> records_;
  std::vector<std::uint64_t> headers_;
  std::vector<std::uint64_t> payloads_;
  std::uint64_t directory_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace shardwright::zip
