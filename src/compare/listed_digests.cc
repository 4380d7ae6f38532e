// SPDX-License-Identifier: Apache-2.0
#include "compare/listed_digests.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "codec/sha256.h"

namespace shardwright {
namespace {

Status compare_with_listed(std::span<const ListedDigest> list, std::string_view list_name,
                           const ListedDigest& wanted, const std::string& found) {
  if (found == wanted.digest) return {};
  const auto other = std::ranges::find(list, found, &ListedDigest::digest);
  const std::string why = other != list.end()
                              ? translated("it is {}, under another name", printable(other->file))
                              : std::string("it was altered, or is of another save; restore it");
  return fail(Code::kDigestMismatch, "{}: found SHA-256 {}, expected {} as {} says; {}",
              printable(wanted.file), found, printable(wanted.digest), list_name, why);
}

}  // namespace

Result<std::string> sha256_of(const Directory& directory, const std::string& path) {
  const std::unique_ptr<ReadableFile> file = SW_TRY(directory.open(path));
  return sha256_of(*file);
}

Result<std::vector<ListedDigest>> digests_of(const Directory& directory,
                                             std::span<const std::string> files,
                                             std::span<const std::uint64_t> bytes,
                                             const Workers& workers) {
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      return JobResult{SW_TRY(sha256_of(directory, files[job])), false};
    };
  };
  const JobStep step{.name = "reading what is written for its SHA-256", .bytes = bytes};
  std::vector<std::string> digests = SW_TRY(run_jobs(step, workers, make_worker));
  std::vector<ListedDigest> listed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    listed.push_back({files[i], std::move(digests[i])});
  }
  return listed;
}

std::string digested_folder(std::span<const std::string> files) {
  for (const std::string& file : files) {
    const std::string folder = file.substr(0, file.find('/') + 1);
    if (folder.starts_with("iter_") || folder == "release/") return folder;
  }
  return "";
}

Result<ListedChecked> check_files(const Directory& directory, std::span<const std::string> files,
                                  std::string_view what,
                                  const std::function<Status(std::size_t)>& check,
                                  const Workers& workers, Defects& defects) {
  std::vector<std::uint64_t> bytes;
  for (const std::string& file : files) {
    const auto version = directory.version(file);
    bytes.push_back(version ? version->size_bytes : 0);
  }
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) { return result_of(check(job), defects); };
  };
  const JobStep step{.name = what, .bytes = bytes};
  const std::vector<std::string> results = SW_TRY(run_jobs(step, workers, make_worker));
  ListedChecked checked;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Status status = SW_TRY(status_in(results[i]));
    if (status) ++checked.right;
    checked.guarded.insert(files[i]);
    SW_TRY(defects.report(std::move(status)));
  }
  return checked;
}

Result<ListedChecked> check_listed(const Directory& directory, std::span<const ListedDigest> list,
                                   std::string_view list_name, const Workers& workers,
                                   Defects& defects) {
  std::vector<std::string> files;
  for (const ListedDigest& one : list) files.push_back(one.file);
  const auto check = [&](std::size_t i) -> Status {
    const auto found = sha256_of(directory, list[i].file);
    if (found) return compare_with_listed(list, list_name, list[i], *found);
    return std::unexpected(Error(found.error()).within(list_name));
  };
  return check_files(directory, files, "comparing digests", check, workers, defects);
}

Status write_guard_file(Directory& directory, const GuardFile& file) {
  const auto made = SW_TRY(directory.create(file.path, file.text.size()));
  SW_TRY(made->write_at(0, std::as_bytes(std::span(file.text))));
  return made->sync();
}

}  // namespace shardwright
