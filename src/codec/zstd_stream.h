// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Decodes the zstd frames that fill a range of a file and hands the bytes on in pieces of at most
/// 128 KiB. Errors: kItemTransformed for bytes that are no zstd or stop within a frame, kLimit
/// for more than `most_bytes` decoded bytes, and what the file and `sink` say.
[[nodiscard]] Status decode_zstd(const ReadableFile& file, ByteRange range,
                                 std::uint64_t most_bytes,
                                 const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace shardwright
