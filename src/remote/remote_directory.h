// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "remote/block_cache.h"
#include "remote/remote_store.h"
#include "shardwright/storage.h"

namespace shardwright {

/// A remote store as a directory that is only read. Each folder is listed once; small reads come
/// out of blocks. Its files may outlive it. Thread-safe.
class RemoteDirectory final : public Directory {
 public:
  explicit RemoteDirectory(std::unique_ptr<RemoteStore> store)
      : store_(std::move(store)), cache_(std::make_shared<BlockCache>()) {}

  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override;
  /// Error: kPermission.
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path) const override;
  [[nodiscard]] bool lists_all() const override {
    return list("").has_value() && store_->tells_all("");
  }
  [[nodiscard]] Result<FileVersion> version(std::string_view path) const override;
  [[nodiscard]] bool exists(std::string_view path) const override;
  [[nodiscard]] const std::string& name() const override { return store_->name(); }

 private:
  // REQUIRES: the lock.
  [[nodiscard]] bool is_known_absent(std::string_view path) const;

  std::shared_ptr<RemoteStore> store_;
  std::shared_ptr<BlockCache> cache_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<DirectoryEntry>, std::less<>> listings_;
};

}  // namespace shardwright
