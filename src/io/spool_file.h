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
/// Reading and write_at() are safe for concurrent use, the others are not.
class SpoolFile final : public ReadableFile {
 public:
  /// `name` is for messages. Errors: kIo, kDiskFull, kPermission.
  [[nodiscard]] static Result<std::unique_ptr<SpoolFile>> create(std::string name);

  /// Whether so many bytes fit into the folder and leave some room to others. Error: kDiskSpace,
  /// with the numbers.
  [[nodiscard]] static Status check_room(std::uint64_t bytes);

  [[nodiscard]] Status append(std::span<const std::byte> bytes);

  /// So long is the file then; it takes no room for what was never written, which reads as zeros.
  [[nodiscard]] Status resize(std::uint64_t bytes);
  /// REQUIRES: it lies in the file.
  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Gives back the room of what nobody will read. Only a hint.
  void forget(std::uint64_t offset, std::uint64_t length) const;

  /// Of what was appended so far, or is there by resize().
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
