// SPDX-License-Identifier: Apache-2.0
#include "format/nemo/archive_directory.h"

#include <map>

#include "base/fail.h"
#include "base/text.h"
#include "codec/tar_index.h"
#include "io/file_window.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

// A member, which keeps the archive open.
class TarMember final : public ReadableFile {
 public:
  TarMember(std::shared_ptr<const ReadableFile> archive, const TarEntry& entry)
      : archive_(std::move(archive)),
        window_(*archive_, {entry.offset, entry.length}),
        name_(archive_->name() + "/" + entry.name) {}

  std::uint64_t size() const override { return window_.size(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    return window_.read_at(offset, buffer);
  }
  const std::string& name() const override { return name_; }
  bool is_remote() const override { return archive_->is_remote(); }
  FileVersion version() const override {
    FileVersion version = window_.version();
    version.size_bytes = size();
    return version;
  }

 private:
  std::shared_ptr<const ReadableFile> archive_;
  FileWindow window_;
  std::string name_;
};

class TarDirectory final : public Directory {
 public:
  TarDirectory(std::shared_ptr<const ReadableFile> archive, std::vector<TarEntry> entries)
      : archive_(std::move(archive)) {
    for (TarEntry& entry : entries) {
      for (std::size_t slash = entry.name.find('/'); slash != std::string::npos;
           slash = entry.name.find('/', slash + 1)) {
        add_to_folder(entry.name.substr(0, slash), {entry.name.substr(0, slash), true, 0});
      }
      add_to_folder(entry.name, {entry.name, false, entry.length});
      const std::string name = entry.name;
      files_.emplace(name, std::move(entry));
    }
  }

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    const TarEntry* const entry = SW_TRY(find(path));
    return std::make_unique<TarMember>(archive_, *entry);
  }
  Result<std::unique_ptr<WritableFile>> create(std::string_view /*path*/,
                                               std::uint64_t /*size*/) override {
    return fail(Code::kPermission, "{}: nothing is written into an archive", archive_->name());
  }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    const auto found = folders_.find(path);
    if (found == folders_.end()) {
      if (path.empty()) return std::vector<DirectoryEntry>();
      return fail(Code::kNotFound, "{}: no folder {} is in it", archive_->name(), printable(path));
    }
    std::vector<DirectoryEntry> entries;
    for (const auto& [name, entry] : found->second) entries.push_back(entry);
    return entries;
  }
  // As the archive is now: it may have been written to since it was opened.
  Result<FileVersion> version(std::string_view path) const override {
    FileVersion version = SW_TRY(open_named(archive_->name()))->version();
    version.size_bytes = SW_TRY(find(path))->length;
    return version;
  }
  bool exists(std::string_view path) const override {
    return path.empty() || files_.contains(path) || folders_.contains(path);
  }
  const std::string& name() const override { return archive_->name(); }

 private:
  void add_to_folder(const std::string& path, DirectoryEntry entry) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
    entry.name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string key = entry.name;
    folders_[folder].emplace(key, std::move(entry));
  }

  Result<const TarEntry*> find(std::string_view path) const {
    const auto found = files_.find(path);
    if (found != files_.end()) return &found->second;
    return fail(Code::kNotFound, "{}: no file {} is in it", archive_->name(), printable(path));
  }

  std::shared_ptr<const ReadableFile> archive_;
  std::map<std::string, TarEntry, std::less<>> files_;
  std::map<std::string, std::map<std::string, DirectoryEntry>, std::less<>> folders_;
};

}  // namespace

Result<std::unique_ptr<Directory>> open_tar_directory(const std::string& path) {
  std::shared_ptr<const ReadableFile> archive = SW_TRY(open_named(path));
  std::vector<TarEntry> entries = SW_TRY(read_tar(*archive));
  return std::make_unique<TarDirectory>(std::move(archive), std::move(entries));
}

}  // namespace shardwright
