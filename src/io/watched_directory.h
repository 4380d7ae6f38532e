// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// A directory that remembers what each file was when it was first opened or asked for, so that
/// what was read of a checkpoint that someone writes to meanwhile is never taken for one state of
/// it. Owns the directory that it passes everything on to. Thread-safe.
class WatchedDirectory final : public Directory {
 public:
  explicit WatchedDirectory(std::unique_ptr<Directory> inner) : inner_(std::move(inner)) {}

  /// Error: kSourceChanged too, for a file that was open before and is another one now.
  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override;
  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> look_into(
      std::string_view path) const override {
    return inner_->look_into(path);
  }
  [[nodiscard]] Status check_unchanged() const override;

  [[nodiscard]] Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                             std::uint64_t size) override {
    return inner_->create(path, size);
  }
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    return inner_->list(path);
  }
  [[nodiscard]] bool lists_all() const override { return inner_->lists_all(); }
  [[nodiscard]] Result<FileVersion> version(std::string_view path) const override;
  [[nodiscard]] bool exists(std::string_view path) const override { return inner_->exists(path); }
  [[nodiscard]] const std::string& name() const override { return inner_->name(); }

 private:
  std::unique_ptr<Directory> inner_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, FileVersion, std::less<>> opened_;
};

}  // namespace shardwright
