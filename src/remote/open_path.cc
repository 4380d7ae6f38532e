// SPDX-License-Identifier: Apache-2.0
#include "remote/open_path.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "io/known_directory.h"
#include "io/local_file.h"
#include "io/named_file.h"
#include "io/remote_path.h"
#include "remote/open_remote.h"

namespace shardwright {
namespace {

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string_view without_slashes_behind(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

/// A file that keeps the directory that it was opened in.
class OwningFile final : public ReadableFile {
 public:
  OwningFile(std::unique_ptr<Directory> directory, std::unique_ptr<ReadableFile> file)
      : directory_(std::move(directory)), file_(std::move(file)) {}

  std::uint64_t size() const override { return file_->size(); }
  const std::string& name() const override { return file_->name(); }
  FileVersion version() const override { return file_->version(); }
  bool is_remote() const override { return file_->is_remote(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    return file_->read_at(offset, buffer);
  }

 private:
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<ReadableFile> file_;
};

Result<std::unique_ptr<Directory>> open_any_directory(const std::string& path) {
  if (!is_remote_path(path)) {
    auto local = open_local_directory(path);
    const bool may_be_hub = !local && remote_hint(path).find("hf download") != std::string::npos;
    if (may_be_hub && is_remote_path("hf://"))
      local.error().message += translated(", or give hf://") + path;
    return local;
  }
  std::unique_ptr<Directory> directory = SW_TRY(reach_directory(path));
  static_cast<void>(SW_TRY(directory->list("")));
  return directory;
}

// A pointer, because a thread's own object has to be ended with it, and where memory lacks for that
// the C library ends the process.
constinit thread_local const KnownPaths* paths_of_thread = nullptr;

Result<std::unique_ptr<Directory>> known_or_not(Result<std::unique_ptr<Directory>> opened) {
  if (!opened || paths_of_thread == nullptr) return opened;
  return paths_of_thread->tells() ? noting_directory(*std::move(opened), paths_of_thread->known())
                                  : knowing_directory(*std::move(opened), paths_of_thread->known());
}

Result<std::unique_ptr<ReadableFile>> open_known_file(const std::string& path) {
  const std::shared_ptr<KnownBytes>& known = paths_of_thread->known();
  if (paths_of_thread->tells()) return noting_file(SW_TRY(open_named_file(path)), known);
  if (!known->find(path)) return open_named_file(path);
  const FileVersion now = SW_TRY(version_of_named_file(path));
  return known_file(path, now, known, [path] { return open_named_file(path); });
}

}  // namespace

KnownPaths::KnownPaths(std::shared_ptr<KnownBytes> known, Way way)
    : known_(std::move(known)), way_(way) {
  paths_of_thread = this;
}

KnownPaths::~KnownPaths() {
  known_->forget();
  paths_of_thread = nullptr;
}

StoppableRequests::StoppableRequests(const std::atomic<bool>& cancelled) {
  stop_requests_by(&cancelled);
}

StoppableRequests::~StoppableRequests() { stop_requests_by(nullptr); }

Result<std::unique_ptr<Directory>> open_directory(const std::string& path) {
  return known_or_not(open_any_directory(path));
}

Result<std::unique_ptr<Directory>> open_folder_of(const std::string& file_path) {
  const std::string folder = folder_above(file_path).value_or(file_path);
  return known_or_not(is_remote_path(file_path) ? reach_directory(folder)
                                                : open_local_directory(folder));
}

Result<std::unique_ptr<ReadableFile>> open_named(const std::string& path) {
  if (!is_remote_path(path)) {
    return paths_of_thread ? open_known_file(path) : open_named_file(path);
  }
  std::unique_ptr<Directory> folder = SW_TRY(open_folder_of(path));
  std::unique_ptr<ReadableFile> file = SW_TRY(folder->open(last_part(path)));
  return std::make_unique<OwningFile>(std::move(folder), std::move(file));
}

Result<std::string> read_named(const std::string& path, std::uint64_t limit_bytes) {
  const std::unique_ptr<ReadableFile> file = SW_TRY(open_named(path));
  return read_all(*file, limit_bytes);
}

bool is_file(const std::string& path) {
  if (!is_remote_path(path)) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
  }
  return may_be_remote_file(path) && folder_above(path) && open_named(path);
}

bool is_folder(const std::string& path) {
  if (!is_remote_path(path)) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  }
  return open_directory(path).has_value();
}

std::optional<std::string> folder_above(const std::string& path) {
  const std::string_view whole = without_slashes_behind(path);
  const std::size_t slash = whole.rfind('/');
  if (is_remote_path(path)) {
    if (whole.size() <= end_of_remote_root(path)) return std::nullopt;
    return std::string(whole.substr(0, slash));
  }
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : whole.substr(0, slash));
}

std::string whole_path(const std::string& path) {
  std::error_code ignored;
  if (is_remote_path(path)) return path;
  const auto whole = std::filesystem::absolute(path, ignored).lexically_normal();
  return std::string(without_slashes_behind(whole.string()));
}

}  // namespace shardwright
