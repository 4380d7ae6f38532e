// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits. To be called once, after the last piece.
  [[nodiscard]] std::string finish();
  /// The same as 32 bytes.
  [[nodiscard]] std::array<std::byte, 32> finish_bytes();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// That of all of a file, in hexadecimal digits. Errors: those of reading.
[[nodiscard]] Result<std::string> sha256_of(const ReadableFile& file);

}  // namespace shardwright
