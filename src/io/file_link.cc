// SPDX-License-Identifier: Apache-2.0
#include "io/file_link.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "base/text.h"
#include "io/beneath.h"

namespace shardwright {
namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// `../../blobs/<hash>`
struct BlobLink {
  std::size_t up = 0;  // how many `../` it begins with
  std::string hash;
};

bool is_hash(std::string_view name) {
  constexpr std::size_t kGitHash = 40;
  constexpr std::size_t kSha256 = 64;
  return (name.size() == kGitHash || name.size() == kSha256) &&
         std::ranges::all_of(
             name, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<BlobLink> parse_blob_link(std::string_view text) {
  constexpr std::string_view kUp = "../";
  constexpr std::string_view kBlobs = "blobs/";
  constexpr std::size_t kMostUp = 64;
  BlobLink link;
  for (; text.starts_with(kUp) && link.up < kMostUp; text.remove_prefix(kUp.size())) ++link.up;
  if (link.up < 2 || !text.starts_with(kBlobs)) return std::nullopt;
  link.hash = text.substr(kBlobs.size());
  return is_hash(link.hash) ? std::optional(link) : std::nullopt;
}

// The folder `levels` above another one, wherever links led to it.
UniqueFd folder_above(int folder, std::size_t levels) {
  std::string path = ".";
  for (std::size_t i = 0; i < levels; ++i) path += "/..";
  return UniqueFd(::openat(folder, path.c_str(), kFolderFlags));
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The blob of a cache; invalid where this is none. `blobs` must lie beside the folder `snapshots`
// that holds the link, and neither it nor the blob may be a link itself.
UniqueFd open_blob(int folder, const BlobLink& link, int flags) {
  const UniqueFd cache = folder_above(folder, link.up);
  const UniqueFd above = folder_above(folder, link.up - 1);
  struct stat snapshots{};
  struct stat seen{};
  if (!cache.valid() || !above.valid() || ::fstat(above.get(), &seen) != 0 ||
      ::fstatat(cache.get(), "snapshots", &snapshots, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_same(snapshots, seen)) {
    return UniqueFd();
  }
  const UniqueFd blobs(::openat(cache.get(), "blobs", kFolderFlags));
  if (!blobs.valid()) return UniqueFd();
  struct stat status{};
  if (::fstatat(blobs.get(), link.hash.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode)) {
    return UniqueFd();
  }
  return UniqueFd(::openat(blobs.get(), link.hash.c_str(), flags | O_NOFOLLOW));
}

Result<std::string> read_link(const NamePlace& place) {
  std::array<char, PATH_MAX> text;  // filled by the call up to `length`
  const ssize_t length = ::readlinkat(place.folder, place.name.c_str(), text.data(), text.size());
  if (length < 0) return fail_errno(errno, translated("{}: cannot read this link", place.shown));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

// Where an open file lies now; empty where the system does not tell.
std::string real_path(int fd) {
  std::array<char, PATH_MAX> text;  // filled by the call up to `length`
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  if (length <= 0 || static_cast<std::size_t>(length) == text.size()) return {};
  return {text.data(), static_cast<std::size_t>(length)};
}

// The way from `root` to an open file that lies beneath it.
std::optional<std::string> path_beneath(int root, int file) {
  std::string outer = real_path(root);
  const std::string inner = real_path(file);
  if (outer.empty()) return std::nullopt;
  if (!outer.ends_with('/')) outer += '/';
  if (inner.size() <= outer.size() || !inner.starts_with(outer)) return std::nullopt;
  return inner.substr(outer.size());
}

std::unexpected<Error> leads_nowhere(int os_errno, const NamePlace& place,
                                     const std::string& target) {
  const std::string shown = printable(target);
  if (os_errno == ENOENT || os_errno == ENOTDIR) {
    return fail(Code::kNotAFile,
                "{} is a link to {}, which does not exist; finish the download, or remove the link",
                place.shown, shown);
  }
  if (os_errno == ELOOP) {
    return fail(Code::kNotAFile, "{} is a link that leads back to itself; remove it", place.shown);
  }
  return fail_errno(os_errno, translated("{}: cannot follow this link to {}", place.shown, shown));
}

}  // namespace

Result<UniqueFd> open_link(const NamePlace& place, int flags) {
  const std::string target = SW_TRY(read_link(place));
  if (const std::optional<BlobLink> blob = parse_blob_link(target)) {
    UniqueFd fd = open_blob(place.folder, *blob, flags);
    if (fd.valid()) return fd;
  }
  // O_PATH looks without opening: a device would notice that.
  const UniqueFd seen(::openat(place.folder, place.name.c_str(), O_PATH | O_CLOEXEC));
  if (!seen.valid()) return leads_nowhere(errno, place, target);
  const std::optional<std::string> inside = path_beneath(place.root, seen.get());
  if (!inside) {
    return fail(
        Code::kPathEscapes,
        "{} is a link out of its folder, to {}; replace it with a copy of that file, or give "
        "the folder that really holds the files",
        place.shown, printable(target));
  }
  // What was looked at lies there without any link, or it was moved and is not opened.
  const auto [folder_path, last] = split_last(*inside);
  const UniqueFd folder = SW_TRY(walk_to_folder(place.root, folder_path));
  UniqueFd fd(::openat(folder.get(), std::string(last).c_str(), flags | O_NOFOLLOW));
  if (!fd.valid()) return fail_errno(errno, translated("{}: cannot open", place.shown));
  return fd;
}

std::unexpected<Error> not_a_file(unsigned mode, const std::string& shown) {
  std::string_view what = "neither a file nor a folder";
  if (S_ISDIR(mode)) what = "a folder";
  if (S_ISFIFO(mode)) what = "a FIFO";
  if (S_ISSOCK(mode)) what = "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) what = "a device";
  return fail(Code::kNotAFile, "{} is {}, where a file is expected; remove it or restore the file",
              shown, what);
}

}  // namespace shardwright
