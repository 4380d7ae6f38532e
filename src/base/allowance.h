// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// What decoding a file may allocate. Formats can say much with few bytes: compressed records,
/// values shared through a memo, lists of empty lists. No checkpoint that software wrote comes near
/// 64 MiB and sixteen times its file; who counts against this before allocating is safe from one
/// that was made to exhaust memory. Not thread-safe.
class Allowance {
 public:
  /// Bytes that a file of this size may expand to; never overflows.
  [[nodiscard]] static std::uint64_t of(std::uint64_t file_bytes);

  explicit Allowance(std::uint64_t file_bytes) : file_bytes_(file_bytes), left_(of(file_bytes)) {}

  /// Counts bytes that are about to be allocated. `what` names them in the plural, for the message:
  /// "chunk lists". Error: kLimit.
  [[nodiscard]] Status take(std::uint64_t bytes, std::string_view what);
  [[nodiscard]] std::uint64_t left() const { return left_; }
  [[nodiscard]] std::uint64_t taken() const { return of(file_bytes_) - left_; }

 private:
  std::uint64_t file_bytes_;
  std::uint64_t left_;
};

/// The error that take() gives, for those who count by themselves.
[[nodiscard]] Status refuse_expansion(std::uint64_t file_bytes, std::string_view what);

}  // namespace shardwright
