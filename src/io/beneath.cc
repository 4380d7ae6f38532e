// SPDX-License-Identifier: Apache-2.0
#include "io/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::size_t kMaxNameBytes = 255;

/// Calls `visit(name)` for each name of the path until it fails.
template <class Visit>
Status for_each_name(std::string_view path, Visit visit) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    SW_TRY(visit(std::string(path.substr(0, slash))));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return {};
}

std::unexpected<Error> folder_error(int os_errno, std::string_view path) {
  if (os_errno == EXDEV || os_errno == ELOOP) {
    return fail(Code::kPathEscapes,
                "{}: found a link that leads out of the directory, expected a folder inside it; "
                "give the folder that the link points to",
                path);
  }
  return fail_errno(os_errno, translated("{}: cannot open this folder", path));
}

Result<UniqueFd> open_one_folder(int parent, const std::string& name, std::string_view path) {
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid()) return fd;
  const int opening_error = errno;
  struct stat status{};
  // O_DIRECTORY wins over O_NOFOLLOW in the kernel: a link is reported as ENOTDIR.
  if (opening_error == ENOTDIR &&
      ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(status.st_mode)) {
    return folder_error(ELOOP, path);
  }
  return folder_error(opening_error, path);
}

Result<UniqueFd> reopen(int root) {
  UniqueFd fd(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return folder_error(errno, ".");
  return fd;
}

}  // namespace

Status check_relative_path(std::string_view path) {
  const auto refuse = [&](std::string_view found) {
    return fail(Code::kPathEscapes,
                "path '{}': found {}, expected plain names joined by single slashes", path, found);
  };
  if (path.empty()) return refuse("nothing");
  if (path.front() == '/') return refuse("an absolute path");
  if (path.back() == '/') return refuse("a slash at the end");
  if (path.find('\0') != std::string_view::npos) {
    return fail(Code::kPathEscapes, "path of {} bytes: found a NUL byte, expected plain names",
                path.size());
  }
  return for_each_name(path, [&](const std::string& name) -> Status {
    if (name.empty()) return refuse("an empty name");
    if (name == "." || name == "..") return refuse(translated("the name '{}'", name));
    if (name.size() > kMaxNameBytes) return refuse("a name over 255 bytes");
    return {};
  });
}

std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {std::string_view(), path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Result<UniqueFd> walk_to_folder(int root, std::string_view path) {
  UniqueFd current = SW_TRY(reopen(root));
  const auto enter = [&](const std::string& name) -> Status {
    current = SW_TRY(open_one_folder(current.get(), name, path));
    return {};
  };
  SW_TRY(for_each_name(path, enter));
  return current;
}

Result<UniqueFd> open_folder_beneath(int root, std::string_view path) {
  if (path.empty()) return reopen(root);
  struct open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const std::string terminated(path);
  const long opened = ::syscall(SYS_openat2, root, terminated.c_str(), &how, sizeof how);
  if (opened >= 0) return UniqueFd(static_cast<int>(opened));
  switch (errno) {
    case ENOSYS:  // Linux before 5.6
    case EPERM:   // container filters that don't know the call answer so
    case EINVAL:
    case EAGAIN:  // a folder moved meanwhile, so the kernel could not prove the path safe
      return walk_to_folder(root, path);
    default:
      return folder_error(errno, path);
  }
}

Result<UniqueFd> make_folders_beneath(int root, std::string_view path) {
  UniqueFd current = SW_TRY(reopen(root));
  const auto make_and_enter = [&](const std::string& name) -> Status {
    if (::mkdirat(current.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return fail_errno(errno, translated("{}: cannot make this folder", path));
    }
    current = SW_TRY(open_one_folder(current.get(), name, path));
    return {};
  };
  SW_TRY(for_each_name(path, make_and_enter));
  return current;
}

}  // namespace shardwright
