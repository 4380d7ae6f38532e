// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

using ByteSink = std::function<Status(std::span<const std::byte>)>;

/// Decodes the zstd frames that fill a range of a file, and the frames in them where what they give
/// begins a frame again, and hands the bytes on in pieces of at most 128 KiB; nothing in between is
/// kept. Errors: kItemTransformed for bytes that are no zstd, stop within a frame or are packed
/// more than `most_layers` times; kLimit, before anything is decoded where a frame says its size,
/// for more than `most_bytes` from a layer; and what the file and `sink` say.
[[nodiscard]] Status decode_zstd(const ReadableFile& file, ByteRange range,
                                 std::uint64_t most_bytes, int most_layers, const ByteSink& sink);

}  // namespace shardwright
