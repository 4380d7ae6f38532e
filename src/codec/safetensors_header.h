// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"

/// The safetensors format (https://github.com/huggingface/safetensors, README "Format"): a 64-bit
/// little-endian header length, a JSON header, the tensors' bytes row-major without holes.
namespace shardwright {

/// The longest header that the reference implementation reads.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct SafetensorsTensor {
  /// `F4` counts values of four bits along the last axis; here, as in torch, the shape counts bytes
  /// of two.
  TensorDesc desc;
  ByteRange range;  ///< in the file
};

using SafetensorsMetadata = std::map<std::string, std::string, std::less<>>;

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;  ///< in the header's order
  SafetensorsMetadata metadata;            ///< `__metadata__`
  std::uint64_t data_offset = 0;           ///< in the file, of the first tensor byte
};

/// Reads and checks a header. Accepts no file that the reference implementation (0.8) rejects, and
/// rejects some that it accepts, because readers disagree about them: repeated keys, fields that
/// nobody knows, padding other than spaces, a header that does not begin with `{`, entries or types
/// in another JSON form, names with control characters. Errors: kSafetensorsCorrupt;
/// kSafetensorsDtype for a type that torch has not (F6, an odd number of F4); kLimit for a header
/// above 100 MB or a tensor of more than 8 axes; kShortRead.
[[nodiscard]] Result<SafetensorsHeader> read_safetensors_header(const ReadableFile& file);

/// Where each byte of a safetensors file goes.
struct SafetensorsLayout {
  std::string header;             ///< the file's first bytes, length and padding included
  std::vector<ByteRange> ranges;  ///< in the file; parallel to the tensors given
  std::uint64_t file_bytes = 0;
};

/// Lays out a file byte for byte as the reference implementation does for the same set of tensors:
/// wider types first, then by name, header padded with spaces to a multiple of 8 (or of
/// `data_alignment`, for readers that want the data at a page). Metadata is sorted by key. Errors:
/// kSafetensorsDtype for a dtype that safetensors lacks, kDuplicateName, kLimit, kUsage for a name
/// that no header can hold.
[[nodiscard]] Result<SafetensorsLayout> layout_safetensors(std::span<const TensorDesc> tensors,
                                                           const SafetensorsMetadata& metadata = {},
                                                           std::uint64_t data_alignment = 8);

}  // namespace shardwright
