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
#include "compare/listed_digests.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSha256Digits = 64;

struct HubFile {
  std::string name;
  std::string sha256;  // that its blob is called by
};

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

Status check_hub_file(const Directory& directory, const HubFile& file) {
  const std::string found = SW_TRY(sha256_of(directory, file.name));
  if (found == file.sha256) return {};
  return fail(Code::kDigestMismatch,
              "{}: found SHA-256 {}, but the cache keeps it as {}: it was altered, or its download "
              "broke off; remove the blob and download it again",
              printable(file.name), found, file.sha256);
}

}  // namespace

Result<HubDigests> check_hub_digests(const Checkpoint& checkpoint, const Workers& workers,
                                     Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  std::vector<HubFile> files;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    if (entry.is_directory || entry.problem) continue;
    auto sha256 = sha256_of_link(fs::path(checkpoint.location.path) / entry.name);
    if (sha256) files.push_back({entry.name, *std::move(sha256)});
  }
  std::vector<std::uint64_t> bytes;
  for (const HubFile& file : files) {
    const auto version = directory.version(file.name);
    bytes.push_back(version ? version->size_bytes : 0);
  }
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      return result_of(check_hub_file(directory, files[job]), defects);
    };
  };
  const std::vector<std::string> found =
      SW_TRY(run_jobs({"comparing digests of the cache", bytes}, workers, make_worker));
  HubDigests checked;
  for (std::size_t i = 0; i < found.size(); ++i) {
    Status status = SW_TRY(status_in(found[i]));
    checked.right += status ? 1 : 0;
    checked.guarded.insert(files[i].name);
    SW_TRY(defects.report(std::move(status)));
  }
  return checked;
}

}  // namespace shardwright
