// SPDX-License-Identifier: Apache-2.0
#include "io/publish.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/fail.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

/// A run makes few publications; more taken numbers than this mean that something is wrong.
constexpr int kMaxPartials = 10'000;

fs::path without_trailing_slash(const std::string& path) {
  fs::path result(path);
  return result.has_filename() || !result.has_parent_path() ? result : result.parent_path();
}

/// The absolute path with the links of everything that exists resolved.
Result<fs::path> resolve(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(without_trailing_slash(path), error);
  if (!error) absolute = fs::weakly_canonical(absolute, error);
  if (error) return fail_errno(error.value(), fmt::format("{}: cannot resolve this path", path));
  return absolute;
}

/// Whether `inner` is `outer` or lies in it, by name or (bind mounts) by identity.
bool is_within(const fs::path& inner, const fs::path& outer) {
  const auto [outer_left, inner_left] =
      std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  if (outer_left == outer.end()) return true;
  for (fs::path ancestor = inner;; ancestor = ancestor.parent_path()) {
    std::error_code error;
    if (fs::equivalent(ancestor, outer, error) && !error) return true;
    if (!ancestor.has_relative_path()) return false;
  }
}

Status check_apart(const fs::path& target, const std::string& source, bool may_be_inside) {
  const fs::path resolved = SW_TRY(resolve(source));
  const bool around = is_within(resolved, target);
  if (!around && (may_be_inside || !is_within(target, resolved))) return {};
  return fail(Code::kTargetInsideSource,
              "{}: found the target {} the source {}, expected them apart; choose another target",
              target.string(), around ? "around" : "in", resolved.string());
}

/// Neither a folder with something in it (unless it may be replaced) nor anything else.
Status check_target(const fs::path& target, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() != fs::file_type::directory) {
    return fail(Code::kTargetExists,
                "{}: found something that is not a folder, expected nothing or a folder; choose "
                "another target or remove it",
                target.string());
  }
  struct statx details{};
  if (::statx(AT_FDCWD, target.c_str(), 0, STATX_TYPE, &details) == 0 &&
      (details.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
    return fail(
        Code::kTargetExists,
        "{}: found a mount point, expected a folder that can be replaced as a whole; choose "
        "a folder inside it",
        target.string());
  }
  const bool empty = fs::is_empty(target, error);
  if (error) return fail_errno(error.value(), fmt::format("{}: cannot list", target.string()));
  if (empty || overwrite) return {};
  return fail(Code::kTargetExists,
              "{}: found a folder that is not empty, expected none; choose another target or "
              "replace it (--overwrite)",
              target.string());
}

Status check_parent(const fs::path& parent) {
  std::error_code error;
  if (!fs::is_directory(parent, error)) {
    return fail(Code::kNotFound, "{}: found no such folder, expected the target's parent; make it",
                parent.string());
  }
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return fail_errno(errno, fmt::format("{}: cannot make a folder here", parent.string()));
  }
  return {};
}

Status check_space(const fs::path& parent, std::uint64_t bytes_needed) {
  if (bytes_needed == 0) return {};
  struct statvfs space{};
  if (::statvfs(parent.c_str(), &space) != 0) {
    return fail_errno(errno, fmt::format("{}: cannot ask for free space", parent.string()));
  }
  const std::uint64_t block = space.f_frsize;
  if (block == 0 || bytes_needed / block < space.f_bavail) return {};
  return fail(Code::kDiskSpace,
              "{}: found {} bytes free, expected at least {}; free some space or choose another "
              "target",
              parent.string(), block * space.f_bavail, bytes_needed);
}

std::string partial_prefix(const fs::path& target) {
  return fmt::format(".{}.partial-", target.filename().string());
}

Result<std::string> make_partial(const fs::path& target) {
  for (int number = 0; number < kMaxPartials; ++number) {
    const fs::path path =
        target.parent_path() / fmt::format("{}{}-{}", partial_prefix(target), ::getpid(), number);
    if (::mkdir(path.c_str(), 0777) == 0) return path.string();
    if (errno != EEXIST) {
      return fail_errno(errno, fmt::format("{}: cannot make this folder", path.string()));
    }
  }
  return fail(Code::kTargetExists,
              "{}: found {} unfinished outputs beside it, expected few; remove "
              "them",
              target.string(), kMaxPartials);
}

/// The process number in `<pid>-<n>`, or 0.
pid_t process_of(std::string_view id) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), pid);
  const bool complete = error == std::errc() && end != id.data() + id.size() && *end == '-';
  return complete && pid > 0 ? pid : 0;
}

bool is_abandoned(const fs::path& partial, pid_t pid) {
  if (::kill(pid, 0) == 0 || errno != ESRCH) return false;
  // The number may belong to another machine or container that shares this file system.
  const UniqueFd folder(::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder.valid() && (::flock(folder.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK);
}

}  // namespace

int PublishCalls::sync_folder(const std::string& path) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.valid() && ::fsync(folder.get()) == 0 ? 0 : errno;
}

int PublishCalls::rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int PublishCalls::exchange(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
}

int PublishCalls::remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error.value();
}

Publication::Publication(PublishOptions options, std::shared_ptr<PublishCalls> calls,
                         std::string target, std::string partial)
    : options_(std::move(options)),
      calls_(std::move(calls)),
      target_(std::move(target)),
      partial_(std::move(partial)) {}

Publication::~Publication() {
  directory_.reset();
  if (!committed_) remove_or_report(partial_);
}

void Publication::remove_or_report(const std::string& path) {
  if (calls_->remove_tree(path) != 0 && options_.report_leftover) options_.report_leftover(path);
}

Result<std::unique_ptr<Publication>> Publication::begin(PublishOptions options,
                                                        std::shared_ptr<PublishCalls> calls) {
  if (options.target.empty()) return fail(Code::kUsage, "found no target, expected a folder");
  const fs::path target = SW_TRY(resolve(options.target));
  if (!target.has_filename()) {
    return fail(Code::kTargetExists, "{}: found the root folder, expected a new one",
                target.string());
  }
  for (const std::string& source : options.sources) SW_TRY(check_apart(target, source, false));
  for (const std::string& kept : options.kept) SW_TRY(check_apart(target, kept, true));
  SW_TRY(check_target(target, options.overwrite));
  SW_TRY(check_parent(target.parent_path()));
  SW_TRY(check_space(target.parent_path(), options.bytes_needed));
  std::string partial = SW_TRY(make_partial(target));
  std::unique_ptr<Publication> publication(
      new Publication(std::move(options), std::move(calls), target.string(), std::move(partial)));
  SW_TRY(publication->open_partial());
  return publication;
}

Status Publication::open_partial() {
  lock_ = UniqueFd(::open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // Some network file systems have no locks; the process number in the name must do there.
  if (lock_.valid()) (void)::flock(lock_.get(), LOCK_EX | LOCK_NB);
  directory_ = SW_TRY(open_local_directory(partial_));
  return {};
}

Status Publication::sync_tree() const {
  std::vector<std::string> folders{partial_};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(partial_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_symlink(ignored) && entry->is_directory(ignored)) {
      folders.push_back(entry->path().string());
    }
  }
  if (error) return fail_errno(error.value(), fmt::format("{}: cannot list", partial_));
  for (const std::string& folder : folders) {
    if (const int failed = calls_->sync_folder(folder); failed != 0) {
      return fail_errno(failed, fmt::format("{}: cannot make this folder durable", folder));
    }
  }
  return {};
}

Status Publication::replace_in_two_steps() {
  const std::string old = partial_ + "-old";
  if (const int failed = calls_->rename(target_, old); failed != 0) {
    return fail_errno(failed, fmt::format("{}: cannot move it aside", target_));
  }
  if (const int failed = calls_->rename(partial_, target_); failed != 0) {
    if (calls_->rename(old, target_) != 0) {
      return fail_errno(failed, fmt::format("{}: cannot move the new folder here; the old one is "
                                            "now {}, move it back",
                                            target_, old));
    }
    return fail_errno(failed, fmt::format("{}: cannot move the new folder here", target_));
  }
  // From here on the names mean what they mean after an exchange: partial_ is what was replaced.
  partial_ = old;
  return {};
}

Status Publication::move_into_place() {
  const int renamed = calls_->rename(partial_, target_);
  if (renamed == 0) {
    partial_.clear();
    return {};
  }
  if (renamed != ENOTEMPTY && renamed != EEXIST) {
    return fail_errno(renamed, fmt::format("{}: cannot move the new folder here", target_));
  }
  SW_TRY(check_target(target_, options_.overwrite));
  const int exchanged = calls_->exchange(partial_, target_);
  if (exchanged == 0) return {};
  if (exchanged != EINVAL && exchanged != ENOSYS && exchanged != EOPNOTSUPP) {
    return fail_errno(exchanged, fmt::format("{}: cannot swap in the new folder", target_));
  }
  return replace_in_two_steps();
}

Status Publication::commit() {
  if (committed_) return fail(Code::kInternal, "{}: found a second commit", target_);
  SW_TRY(sync_tree());
  SW_TRY(move_into_place());
  committed_ = true;
  const std::string parent = fs::path(target_).parent_path().string();
  const int failed = calls_->sync_folder(parent);
  // The old folder is removed only when the new one is sure to stay.
  if (failed == 0 && !partial_.empty()) remove_or_report(partial_);
  if (failed != 0 && !partial_.empty() && options_.report_leftover) {
    options_.report_leftover(partial_);
  }
  if (failed == 0) return {};
  return fail_errno(failed, fmt::format("{}: the new folder {} is in place but may not outlive a "
                                        "power failure",
                                        parent, target_));
}

std::vector<std::string> stale_partials(std::string_view target) {
  std::vector<std::string> stale;
  const auto resolved = resolve(std::string(target));
  if (!resolved) return stale;
  const std::string prefix = partial_prefix(*resolved);
  std::error_code error;
  for (fs::directory_iterator entry(resolved->parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const pid_t pid = process_of(std::string_view(name).substr(prefix.size()));
    if (pid != 0 && is_abandoned(entry->path(), pid)) stale.push_back(entry->path().string());
  }
  std::ranges::sort(stale);
  return stale;
}

}  // namespace shardwright
