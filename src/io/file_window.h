// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/fail.h"
#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

/// A part of a file that is read as if it were a file of its own; offsets count from its start.
class FileWindow final : public ReadableFile {
 public:
  /// Borrows `file`. What of `window` lies behind the file's end is not there.
  FileWindow(const ReadableFile& file, ByteRange window)
      : file_(&file),
        offset_(std::min(window.offset, file.size())),
        size_(std::min(window.length, file.size() - offset_)) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& name() const override { return file_->name(); }
  [[nodiscard]] FileVersion version() const override { return file_->version(); }
  [[nodiscard]] bool is_remote() const override { return file_->is_remote(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset > size_ || buffer.size() > size_ - offset) {
      return fail(Code::kShortRead,
                  "{}: found the end of a window of {} bytes, expected {} from {}", name(), size_,
                  buffer.size(), offset);
    }
    return file_->read_at(offset_ + offset, buffer);
  }

 private:
  const ReadableFile* file_;
  std::uint64_t offset_;
  std::uint64_t size_;
};

}  // namespace shardwright
