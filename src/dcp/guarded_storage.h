// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/fail.h"
#include "codec/torch_archive.h"
#include "io/source_files.h"

namespace shardwright {

/// What is read of a located tensor's storage from now on is compared with the CRC-32 that its
/// archive has of it, if it has one. `tensor`: a name for messages.
inline void expect_record(SourceFiles& files, std::uint32_t file, const LocatedTensor& place,
                          std::string_view tensor) {
  if (place.storage_crc == 0) return;
  files.expect(
      {file, place.storage, place.storage_crc, place.record, fmt::format("tensor {}", tensor)});
}

}  // namespace shardwright
