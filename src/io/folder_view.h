// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// A folder of a directory as a directory of its own. Paths can't leave it.
class FolderView final : public Directory {
 public:
  FolderView(std::shared_ptr<Directory> inner, std::string folder)
      : inner_(std::move(inner)), prefix_(folder + "/"), name_(inner_->name() + "/" + folder) {}

  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    return inner_->open(prefix_ + std::string(path));
  }
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                             std::uint64_t size) override {
    return inner_->create(prefix_ + std::string(path), size);
  }
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    if (path.empty()) return inner_->list(std::string_view(prefix_).substr(0, prefix_.size() - 1));
    return inner_->list(prefix_ + std::string(path));
  }
  [[nodiscard]] bool lists_all() const override { return inner_->lists_all(); }
  [[nodiscard]] Result<FileVersion> version(std::string_view path) const override {
    return inner_->version(prefix_ + std::string(path));
  }
  [[nodiscard]] Status check_unchanged() const override { return inner_->check_unchanged(); }
  [[nodiscard]] bool exists(std::string_view path) const override {
    return path.empty() || inner_->exists(prefix_ + std::string(path));
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::shared_ptr<Directory> inner_;
  std::string prefix_;
  std::string name_;
};

}  // namespace shardwright
