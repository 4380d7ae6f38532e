// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "codec/torch_layout.h"
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

  // An archive whose storages are still being written.
  struct OpenArchive {
    std::uint32_t file;
    TorchLayout layout;
    std::vector<std::uint32_t> crcs;  // of its storages
    std::size_t missing;              // storages that are not complete
  };
  struct StorageOf {
    std::uint32_t archive;
    std::uint32_t index;
  };

  [[nodiscard]] Status write_empty_items();
  [[nodiscard]] Status open_archives();
  [[nodiscard]] Status open_archive(const TargetArchive& archive);
  [[nodiscard]] Status write_storage_run(std::size_t tensor, const Run& run,
                                         std::span<const std::byte> bytes);
  [[nodiscard]] Status close_archive(const OpenArchive& archive);
  /// The CRC-32 of a payload once its last run is in; until then nothing.
  [[nodiscard]] std::optional<std::uint32_t> add_run(std::uint64_t key, std::uint64_t payload,
                                                     const Run& run);
  [[nodiscard]] Status write_item(const StoredTensor& tensor, std::uint32_t chunk,
                                  std::span<const std::byte> payload);
  [[nodiscard]] Status write_item_run(std::size_t tensor, std::uint32_t chunk, const Run& run,
                                      std::span<const std::byte> bytes);

  const Plan* plan_;
  Directory* directory_;
  std::vector<std::unique_ptr<WritableFile>> files_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // payloads that are not complete
  std::vector<OpenArchive> archives_;
  std::unordered_map<std::size_t, StorageOf> storages_;  // by target tensor
};

}  // namespace shardwright
