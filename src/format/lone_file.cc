// SPDX-License-Identifier: Apache-2.0
#include "format/lone_file.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "format/formats.h"
#include "format/model_files.h"
#include "format/nemo/archive_directory.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

// An archive of NeMo 1 is read as the folder that it would be unpacked into.
constexpr std::string_view kArchiveEnding = ".nemo";

class LoneFile final : public Directory {
 public:
  LoneFile(std::unique_ptr<Directory> folder, std::string path, std::string name,
           std::vector<DirectoryEntry> entries)
      : folder_(std::move(folder)),
        path_(std::move(path)),
        name_(std::move(name)),
        entries_(std::move(entries)) {}

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    if (path == name_) return open_named(path_);
    if (exists(path)) return folder_->open(path);
    return fail(Code::kNotFound, "{}: cannot open {}: only this file was given, not its folder",
                path_, path);
  }
  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    return folder_->create(path, size);
  }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    if (path.empty()) return entries_;
    return fail(Code::kNotFound, "{}: cannot list {}: only this file was given, not its folder",
                path_, path);
  }
  Result<FileVersion> version(std::string_view path) const override {
    if (exists(path)) return folder_->version(path);
    return fail(Code::kNotFound, "{}: only this file was given, not its folder", path_);
  }
  bool exists(std::string_view path) const override {
    return path.empty() ||
           std::ranges::find(entries_, path, &DirectoryEntry::name) != entries_.end();
  }
  const std::string& name() const override { return path_; }

 private:
  std::unique_ptr<Directory> folder_;
  std::string path_;
  std::string name_;  // of the file in its folder
  std::vector<DirectoryEntry> entries_;
};

}  // namespace

bool is_lone_file(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool is_read = std::ranges::any_of(
      source_formats(), [&](const SourceFormat* format) { return format->reads_file(name); });
  return is_read && is_file(path);
}

bool is_lone_archive(const std::string& path) {
  return path.ends_with(kArchiveEnding) && is_lone_file(path);
}

Result<std::unique_ptr<Directory>> open_lone_file(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(kArchiveEnding)) return open_tar_directory(path);
  const auto file = SW_TRY(open_named(path));
  std::unique_ptr<Directory> folder = SW_TRY(open_folder_of(path));
  std::vector<DirectoryEntry> entries = {{name, false, file->size()}};
  // A server need not tell what else there is.
  auto listed = folder->list("");
  if (!listed && listed.error().code != Code::kNotFound) {
    return std::unexpected(std::move(listed).error());
  }
  for (DirectoryEntry& entry : listed.value_or(std::vector<DirectoryEntry>())) {
    if (entry.name != name && !entry.is_directory && describes_model(entry.name)) {
      entries.push_back(std::move(entry));
    }
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return std::make_unique<LoneFile>(std::move(folder), path, name, std::move(entries));
}

}  // namespace shardwright
