// SPDX-License-Identifier: Apache-2.0
#include "io/watched_directory.h"

#include <string_view>

#include "base/fail.h"

namespace shardwright {
namespace {

std::string change(const FileVersion& before, const FileVersion& now) {
  if (before.device != now.device || before.number != now.number) {
    return "another file has taken its place";
  }
  if (before.size_bytes != now.size_bytes) {
    return translated("{} bytes became {}", before.size_bytes, now.size_bytes);
  }
  return before.modified_ns != now.modified_ns ? "it was written to" : "its state was changed";
}

std::unexpected<Error> changed(std::string_view folder, std::string_view path,
                               std::string_view how) {
  return fail(Code::kSourceChanged,
              "{}/{}: changed while it was read: {}; run the command again once nothing writes to "
              "this checkpoint any more",
              folder, path, how);
}

}  // namespace

Result<std::unique_ptr<ReadableFile>> WatchedDirectory::open(std::string_view path) const {
  auto file = SW_TRY(inner_->open(path));
  const std::scoped_lock lock(mutex_);
  const FileVersion now = file->version();
  const auto [known, is_new] = opened_.try_emplace(std::string(path), now);
  if (!(known->second == now)) return changed(name(), path, change(known->second, now));
  return file;
}

Result<FileVersion> WatchedDirectory::version(std::string_view path) const {
  const FileVersion now = SW_TRY(inner_->version(path));
  const std::scoped_lock lock(mutex_);
  opened_.try_emplace(std::string(path), now);
  return now;
}

Status WatchedDirectory::check_unchanged() const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [path, before] : opened_) {
    const Result<FileVersion> now = inner_->version(path);
    if (!now && now.error().code == Code::kNotFound) {
      return changed(name(), path, "it is not there any more");
    }
    if (!now) return std::unexpected(now.error());
    if (!(*now == before)) return changed(name(), path, change(before, *now));
  }
  return {};
}

}  // namespace shardwright
