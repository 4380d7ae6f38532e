// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwright/plan.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Puts chunk payloads into the target's files and the archive framing around them. A chunk may
/// arrive in several runs from several threads; the framing that holds its CRC-32 follows the last.
class TargetWriter {
 public:
  /// Borrows both.
  TargetWriter(const Plan& plan, Directory& directory) : plan_(&plan), directory_(&directory) {}

  /// Creates every file at its final size and writes the literals. Not thread-safe.
  [[nodiscard]] Status create();
  /// Writes a contiguous run of a chunk's row-major payload. Safe for concurrent use.
  [[nodiscard]] Status write_run(std::size_t tensor, std::uint32_t chunk, std::uint64_t run_offset,
                                 std::span<const std::byte> bytes);
  /// Writes raw bytes of an object. Safe for concurrent use.
  [[nodiscard]] Status write_raw(std::uint32_t file, std::uint64_t offset,
                                 std::span<const std::byte> bytes);
  /// Makes one file durable. Safe for concurrent use on different files.
  [[nodiscard]] Status sync(std::size_t file) { return files_[file]->sync(); }
  [[nodiscard]] std::size_t file_count() const { return files_.size(); }

 private:
  struct Run {
    std::uint64_t offset;
    std::uint64_t length;
    std::uint32_t crc;
  };
  struct Pending {
    std::uint64_t missing;
    std::vector<Run> runs;
  };

  [[nodiscard]] Status write_item(const StoredTensor& tensor, std::uint32_t chunk,
                                  std::span<const std::byte> payload);
  [[nodiscard]] Status write_item_run(std::size_t tensor, std::uint32_t chunk, const Run& run,
                                      std::span<const std::byte> bytes);

  const Plan* plan_;
  Directory* directory_;
  std::vector<std::unique_ptr<WritableFile>> files_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // archives whose payload is not complete
};

}  // namespace shardwright
