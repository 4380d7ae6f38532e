// SPDX-License-Identifier: Apache-2.0
#include "format/unfinished_download.h"

#include <algorithm>
#include <array>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 7> kEndings = {
    ".incomplete", ".part", ".partial", ".crdownload", ".download", kUnfilledEnding, ".!qB"};
// `<file>.<etag>.incomplete`
constexpr std::string_view kHubFolder = ".cache/huggingface/download";
constexpr std::string_view kHubEnding = ".incomplete";

}  // namespace

bool is_unfinished_download(std::string_view name) {
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

std::optional<std::string> unfinished_download_of(const Directory& directory,
                                                  std::string_view path) {
  for (const std::string_view ending : kEndings) {
    std::string name = fmt::format("{}{}", path, ending);
    if (directory.exists(name) && directory.version(name)) return name;
  }
  if (!directory.exists(kHubFolder)) return std::nullopt;
  const auto entries = directory.list(kHubFolder);
  if (!entries) return std::nullopt;
  const std::string begin = fmt::format("{}.", path);
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.starts_with(begin) && entry.name.ends_with(kHubEnding)) {
      return fmt::format("{}/{}", kHubFolder, entry.name);
    }
  }
  return std::nullopt;
}

Error with_download_hint(Error error, const Directory& directory, std::string_view path) {
  if (error.code != Code::kNotFound) return error;
  if (const auto download = unfinished_download_of(directory, path)) {
    error.message +=
        translated("; {} is its download, which did not end: download it again", *download);
  }
  return error;
}

Status check_downloaded(const Directory& directory, std::string_view path) {
  if (!directory.exists(fmt::format("{}{}", path, kUnfilledEnding))) return {};
  return fail(
      Code::kShortRead,
      "{0}: {0}.aria2 says that its download did not end, though the file has its full size; "
      "resume it, or remove {0}.aria2 where you know that it is complete",
      path);
}

}  // namespace shardwright
