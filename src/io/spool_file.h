// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "io/unique_fd.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Bytes that are made while a checkpoint is read and may be too many for memory: a file without a
/// name in $TMPDIR (else /tmp), which is gone when nobody holds it any more, also after a crash.
/// Reading is safe for concurrent use, appending is not.
class SpoolFile final : public ReadableFile {
 public:
  /// `name` is for messages. Errors: kIo, kDiskFull, kPermission.
  [[nodiscard]] static Result<std::unique_ptr<SpoolFile>> create(std::string name);

  /// Whether so many bytes fit into the folder and leave some room to others. Error: kDiskSpace,
  /// with the numbers.
  [[nodiscard]] static Status check_room(std::uint64_t bytes);

  [[nodiscard]] Status append(std::span<const std::byte> bytes);

  /// Of what was appended so far.
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override;
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  SpoolFile(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  UniqueFd fd_;
  std::string name_;
  std::uint64_t size_ = 0;
};

}  // namespace shardwright
