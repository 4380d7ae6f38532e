// SPDX-License-Identifier: Apache-2.0
#include "compare/hub_digests.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSha256Digits = 64;

// What a link of a cache's snapshot says of what it leads to; nothing of other files.
std::optional<std::string> sha256_of_link(const fs::path& path) {
  std::error_code error;
  const fs::path link = fs::read_symlink(path, error);
  if (error || link.parent_path().filename() != "blobs") return std::nullopt;
  std::string name = link.filename().string();
  const bool is_sha256 = name.size() == kSha256Digits &&
                         name.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_sha256) return std::nullopt;
  return name;
}

// `sha256`: that its blob is called by.
Status check_hub_file(const Directory& directory, const std::string& name,
                      const std::string& sha256) {
  const std::string found = SW_TRY(sha256_of(directory, name));
  if (found == sha256) return {};
  return fail(Code::kDigestMismatch,
              "{}: found SHA-256 {}, but the cache keeps it as {}: it was altered, or its download "
              "broke off; remove the blob and download it again",
              printable(name), found, sha256);
}

}  // namespace

Result<ListedChecked> check_hub_digests(const Checkpoint& checkpoint, const Workers& workers,
                                        Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  std::vector<std::string> names;
  std::vector<std::string> sha256s;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    if (entry.is_directory || entry.problem) continue;
    auto sha256 = sha256_of_link(fs::path(checkpoint.location.path) / entry.name);
    if (!sha256) continue;
    names.push_back(entry.name);
    sha256s.push_back(*std::move(sha256));
  }
  return check_files(
      directory, names, "comparing digests of the cache",
      [&](std::size_t i) { return check_hub_file(directory, names[i], sha256s[i]); }, workers,
      defects);
}

}  // namespace shardwright
