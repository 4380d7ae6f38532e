// SPDX-License-Identifier: Apache-2.0
#include "io/output_place.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/fail.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

fs::path without_trailing_slash(const fs::path& result) {
  return result.has_filename() || !result.has_parent_path() ? result : result.parent_path();
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

std::vector<std::string> home_folders() {
  std::vector<std::string> homes;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    homes.emplace_back(home);
  }
  const passwd* user = ::getpwuid(::geteuid());
  if (user != nullptr && user->pw_dir != nullptr) homes.emplace_back(user->pw_dir);
  return homes;
}

}  // namespace

Result<fs::path> resolved_output(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(without_trailing_slash(path), error);
  if (!error) absolute = fs::weakly_canonical(absolute, error);
  if (error) return fail_errno(error.value(), translated("{}: cannot resolve this path", path));
  // Of what does not exist yet "new/." and "new/x/.." become "new/".
  return without_trailing_slash(absolute);
}

Status check_apart(const fs::path& target, const std::string& source, bool may_be_inside) {
  const fs::path resolved = SW_TRY(resolved_output(source));
  const bool around = is_within(resolved, target);
  if (!around && (may_be_inside || !is_within(target, resolved))) return {};
  return fail(Code::kTargetInsideSource,
              "{}: found the target {} the source {}, expected them apart; choose another target",
              target.string(), around ? translated("around") : translated("in"), resolved.string());
}

bool is_mount_point(const fs::path& path) {
  struct statx details{};
  return ::statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &details) == 0 &&
         (details.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

fs::path existing_ancestor(const fs::path& path) {
  std::error_code error;
  fs::path ancestor = path.parent_path();
  while (ancestor.has_relative_path() &&
         fs::symlink_status(ancestor, error).type() == fs::file_type::not_found) {
    ancestor = ancestor.parent_path();
  }
  return ancestor;
}

Status check_is_folder(const fs::path& target) {
  std::error_code error;
  if (fs::symlink_status(target, error).type() == fs::file_type::directory) return {};
  return fail(Code::kTargetExists,
              "{}: found something that is not a folder, expected nothing or a folder; choose "
              "another target or remove it",
              target.string());
}

Status check_may_be_replaced(const std::string& folder) {
  const fs::path target = SW_TRY(resolved_output(folder));
  const auto refuse = [&](std::string_view what) {
    return fail(Code::kTargetExists,
                "{} is {} and is never replaced as a whole; choose a folder in it", target.string(),
                what);
  };
  if (!target.has_relative_path()) return refuse("the root folder");
  if (is_mount_point(target)) return refuse("a mount point");
  std::error_code error;
  const fs::path current = fs::current_path(error);
  if (!error && is_within(current, target)) return refuse("the current directory, or holds it,");
  for (const std::string& home : home_folders()) {
    const auto resolved = resolved_output(home);
    if (resolved && is_within(*resolved, target)) return refuse("a home directory, or holds one,");
  }
  return {};
}

}  // namespace shardwright
