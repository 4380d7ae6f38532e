// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "io/unique_fd.h"
#include "shardwright/error.h"

namespace shardwright {

/// A file that only grows. What one append() wrote is in it whole or is its torn end.
class AppendFile {
 public:
  /// Makes a file, or opens one that is there. Follows no link. Error: kIo and its like.
  [[nodiscard]] static Result<std::unique_ptr<AppendFile>> open(std::string path);

  /// Safe for concurrent use.
  [[nodiscard]] Status append(std::span<const std::byte> bytes) const;
  /// Cuts the file behind its first `size` bytes.
  [[nodiscard]] Status truncate(std::uint64_t size) const;
  /// Makes what was appended durable.
  [[nodiscard]] Status sync() const;
  /// Keeps others from locking it as long as this object lives; false: somebody has it locked.
  /// File systems without locks let everybody through.
  [[nodiscard]] bool lock() const;

 private:
  AppendFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;
};

}  // namespace shardwright
