// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// Fills a buffer of the wanted size. Errors: those of read_at().
[[nodiscard]] inline Status read_into(const ReadableFile& file, std::uint64_t offset,
                                      std::string& buffer) {
  return file.read_at(offset, std::as_writable_bytes(std::span(buffer)));
}

}  // namespace shardwright
