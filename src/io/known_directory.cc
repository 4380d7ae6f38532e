// SPDX-License-Identifier: Apache-2.0
#include "io/known_directory.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

class NotingFile final : public ReadableFile {
 public:
  NotingFile(std::unique_ptr<ReadableFile> inner, std::shared_ptr<KnownBytes> known)
      : inner_(std::move(inner)), known_(std::move(known)) {
    known_->add_file(inner_->name(), inner_->version());
  }

  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  FileVersion version() const override { return inner_->version(); }
  bool is_remote() const override { return inner_->is_remote(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    SW_TRY(inner_->read_at(offset, buffer));
    known_->add(inner_->name(), offset, buffer);
    return {};
  }
  std::optional<std::uint64_t> cached_bytes(std::uint64_t offset,
                                            std::uint64_t length) const override {
    return inner_->cached_bytes(offset, length);
  }
  void give_back(std::uint64_t offset, std::uint64_t length) const override {
    inner_->give_back(offset, length);
  }

 private:
  std::unique_ptr<ReadableFile> inner_;
  std::shared_ptr<KnownBytes> known_;
};

class KnownFile final : public ReadableFile {
 public:
  KnownFile(std::string name, const FileVersion& version, std::shared_ptr<const KnownBytes> known,
            OpenFile open)
      : name_(std::move(name)),
        version_(version),
        known_(std::move(known)),
        open_(std::move(open)) {}

  std::uint64_t size() const override { return version_.size_bytes; }
  const std::string& name() const override { return name_; }
  FileVersion version() const override { return version_; }
  bool is_open() const override { return is_open_; }
  // Nobody asks a server for what is known.
  bool is_remote() const override {
    const std::scoped_lock lock(mutex_);
    return file_ != nullptr && file_->is_remote();
  }

  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    if (known_->copy(name_, offset, buffer)) return {};
    const ReadableFile* const file = SW_TRY(opened());
    return file->read_at(offset, buffer);
  }
  // Who asks is about to read all of it.
  std::optional<std::uint64_t> cached_bytes(std::uint64_t offset,
                                            std::uint64_t length) const override {
    const auto file = opened();
    return file ? (*file)->cached_bytes(offset, length) : std::nullopt;
  }
  void give_back(std::uint64_t offset, std::uint64_t length) const override {
    if (const auto file = opened()) (*file)->give_back(offset, length);
  }

 private:
  Result<const ReadableFile*> opened() const {
    const std::scoped_lock lock(mutex_);
    if (file_ != nullptr) return file_.get();
    auto file = SW_TRY(open_());
    if (!(file->version() == version_)) {
      return fail(
          Code::kSourceChanged,
          "{}: changed while it was read: it is not the file any more that it was at first; "
          "run the command again once nothing writes to this checkpoint any more",
          name_);
    }
    file_ = std::move(file);
    is_open_ = true;
    return file_.get();
  }

  std::string name_;
  FileVersion version_;
  std::shared_ptr<const KnownBytes> known_;
  OpenFile open_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<ReadableFile> file_;  // null: not opened
  mutable std::atomic<bool> is_open_{false};
};

/// Everything but open() is passed on.
class PassingDirectory : public Directory {
 public:
  explicit PassingDirectory(std::unique_ptr<Directory> inner) : inner_(std::move(inner)) {}

  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    return inner_->create(path, size);
  }
  Result<std::unique_ptr<WritableFile>> reopen(std::string_view path, std::uint64_t size) override {
    return inner_->reopen(path, size);
  }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    return inner_->list(path);
  }
  bool lists_all() const override { return inner_->lists_all(); }
  Result<FileVersion> version(std::string_view path) const override {
    return inner_->version(path);
  }
  Status check_unchanged() const override { return inner_->check_unchanged(); }
  bool exists(std::string_view path) const override { return inner_->exists(path); }
  const std::string& name() const override { return inner_->name(); }

 protected:
  // Shared with files, which may be opened later.
  std::shared_ptr<Directory> inner_;
};

class NotingDirectory final : public PassingDirectory {
 public:
  NotingDirectory(std::unique_ptr<Directory> inner, std::shared_ptr<KnownBytes> known)
      : PassingDirectory(std::move(inner)), known_(std::move(known)) {}

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    return noting_file(SW_TRY(inner_->open(path)), known_);
  }

 private:
  std::shared_ptr<KnownBytes> known_;
};

class KnowingDirectory final : public PassingDirectory {
 public:
  KnowingDirectory(std::unique_ptr<Directory> inner, std::shared_ptr<const KnownBytes> known)
      : PassingDirectory(std::move(inner)), known_(std::move(known)) {}

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    // As files in it are called.
    const std::string shown = fmt::format("{}{}{}", name(), name().ends_with('/') ? "" : "/", path);
    if (!known_->find(shown)) return inner_->open(path);
    const FileVersion now = SW_TRY(inner_->version(path));
    return known_file(shown, now, known_,
                      [inner = inner_, path = std::string(path)] { return inner->open(path); });
  }

 private:
  std::shared_ptr<const KnownBytes> known_;
};

}  // namespace

std::unique_ptr<ReadableFile> noting_file(std::unique_ptr<ReadableFile> file,
                                          std::shared_ptr<KnownBytes> known) {
  return std::make_unique<NotingFile>(std::move(file), std::move(known));
}

std::unique_ptr<Directory> noting_directory(std::unique_ptr<Directory> inner,
                                            std::shared_ptr<KnownBytes> known) {
  return std::make_unique<NotingDirectory>(std::move(inner), std::move(known));
}

Result<std::unique_ptr<ReadableFile>> known_file(const std::string& name, const FileVersion& now,
                                                 std::shared_ptr<const KnownBytes> known,
                                                 OpenFile open) {
  const std::optional<FileVersion> seen = known->find(name);
  if (!seen) return open();
  if (seen->size_bytes != now.size_bytes || seen->modified_ns != now.modified_ns) {
    return fail(Code::kRanksDiffer,
                "{}: found {} bytes{}, expected the file of {} bytes that rank 0 sees; all ranks "
                "must see the same files",
                name, now.size_bytes,
                seen->size_bytes == now.size_bytes ? " that changed at another time" : "",
                seen->size_bytes);
  }
  return std::make_unique<KnownFile>(name, now, std::move(known), std::move(open));
}

std::unique_ptr<Directory> knowing_directory(std::unique_ptr<Directory> inner,
                                             std::shared_ptr<const KnownBytes> known) {
  return std::make_unique<KnowingDirectory>(std::move(inner), std::move(known));
}

}  // namespace shardwright
