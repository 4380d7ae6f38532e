// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What was done to one file.
struct FileRecord {
  int opens = 0;
  int creates = 0;
  int syncs = 0;
  std::vector<ByteRange> reads;       ///< in call order; successful ones only
  std::vector<ByteRange> writes;      ///< likewise; gathered pieces count as one write
  std::vector<ByteRange> given_back;  ///< of the page cache
};

/// Passes everything on to another directory and keeps a record of it: tests prove with it that
/// files are opened once and that hardly a byte is read in vain. Thread-safe. The files that it
/// hands out may outlive it; the inner directory must outlive both.
class RecordingDirectory final : public Directory {
 public:
  /// `is_remote`: its files say that they are.
  explicit RecordingDirectory(Directory& inner, bool is_remote = false)
      : inner_(inner), is_remote_(is_remote), journal_(std::make_shared<Journal>()) {}

  /// By path.
  [[nodiscard]] std::map<std::string, FileRecord> records() const;
  [[nodiscard]] int opens() const;
  [[nodiscard]] std::uint64_t bytes_read() const;
  [[nodiscard]] std::uint64_t bytes_written() const;

  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> reopen(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    return inner_.list(path);
  }
  [[nodiscard]] bool lists_all() const override { return inner_.lists_all(); }
  [[nodiscard]] Result<FileVersion> version(std::string_view path) const override {
    return inner_.version(path);
  }
  [[nodiscard]] Status check_unchanged() const override { return inner_.check_unchanged(); }
  [[nodiscard]] bool exists(std::string_view path) const override { return inner_.exists(path); }
  [[nodiscard]] const std::string& name() const override { return inner_.name(); }

  /// The record and its lock.
  struct Journal {
    std::mutex mutex;
    std::map<std::string, FileRecord> files;
  };

 private:
  Directory& inner_;
  bool is_remote_;
  std::shared_ptr<Journal> journal_;
};

}  // namespace shardwright
