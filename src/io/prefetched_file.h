// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// A file of which one range has been read already: reads inside it cost nothing, all others go to
/// the file, which must outlive it. Not thread-safe.
class PrefetchedFile final : public ReadableFile {
 public:
  explicit PrefetchedFile(const ReadableFile& inner) : inner_(inner) {}
  [[nodiscard]] std::uint64_t size() const override { return inner_.size(); }
  [[nodiscard]] const std::string& name() const override { return inner_.name(); }
  [[nodiscard]] FileVersion version() const override { return inner_.version(); }
  [[nodiscard]] bool is_remote() const override { return inner_.is_remote(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override;

  /// Reads the range that later reads find; the one before is forgotten.
  [[nodiscard]] Status fetch(std::uint64_t offset, std::uint64_t length);
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

 private:
  const ReadableFile& inner_;
  std::uint64_t offset_ = 0;
  std::string bytes_;
};

}  // namespace shardwright
