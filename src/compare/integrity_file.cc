// SPDX-License-Identifier: Apache-2.0
#include "compare/integrity_file.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "codec/sha256.h"
#include "exec/threads.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

struct ListedDigest {
  std::string file;
  std::string digest;
};

Result<std::vector<ListedDigest>> read_digests(const Directory& directory) {
  const std::string text = SW_TRY(read_whole(directory, kIntegrityFile, kMostBytes));
  const nlohmann::json document = SW_TRY(parse_json(text, kIntegrityFile));
  const auto invalid = [] {
    return fail(Code::kJsonCorrupt,
                "{}: expected \"algorithm\": \"sha256\" and \"files\", an object of digests; "
                "remove the file if its digests are of no use",
                kIntegrityFile);
  };
  if (!document.is_object() || document.value("algorithm", nlohmann::json()) != "sha256" ||
      !document.contains("files") || !document["files"].is_object()) {
    return invalid();
  }
  std::vector<ListedDigest> listed;
  for (const auto& [file, digest] : document["files"].items()) {
    if (!digest.is_string()) return invalid();
    listed.push_back({file, digest.get<std::string>()});
  }
  return listed;
}

Status compare(const std::vector<ListedDigest>& listed, const ListedDigest& wanted,
               const std::string& found) {
  if (found == wanted.digest) return {};
  const auto other = std::ranges::find(listed, found, &ListedDigest::digest);
  const std::string why = other != listed.end()
                              ? fmt::format("it is {}, under another name", printable(other->file))
                              : std::string("it was altered, or is of another save; restore it");
  return fail(Code::kDigestMismatch, "{}: found SHA-256 {}, expected {} as {} says; {}",
              printable(wanted.file), found, printable(wanted.digest), kIntegrityFile, why);
}

}  // namespace

Result<std::string> sha256_of(const Directory& directory, const std::string& path) {
  const std::unique_ptr<ReadableFile> file = SW_TRY(directory.open(path));
  std::vector<std::byte> block(
      static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), kBlockBytes)));
  Sha256 hash;
  for (std::uint64_t done = 0; done < file->size();) {
    const std::uint64_t step = std::min<std::uint64_t>(block.size(), file->size() - done);
    const auto bytes = std::span(block).first(static_cast<std::size_t>(step));
    SW_TRY(file->read_at(done, bytes));
    hash.update(bytes);
    done += step;
  }
  return hash.finish();
}

std::string digested_folder(std::span<const std::string> files) {
  for (const std::string& file : files) {
    const std::string folder = file.substr(0, file.find('/') + 1);
    if (folder.starts_with("iter_") || folder == "release/") return folder;
  }
  return "";
}

Result<IntegrityFile> make_integrity_file(const Directory& directory,
                                          std::span<const std::string> files, int threads) {
  const std::string folder = digested_folder(files);
  std::vector<ListedDigest> listed;
  for (const std::string& file : files) {
    if (file.starts_with(folder)) listed.push_back({file, ""});
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&]() -> Status {
    for (std::size_t i = next++; i < listed.size(); i = next++) {
      listed[i].digest = SW_TRY(sha256_of(directory, listed[i].file));
    }
    return {};
  };
  SW_TRY(run_on_threads(threads, [&] { next = listed.size(); }, work));
  nlohmann::json digests = nlohmann::json::object();
  for (const ListedDigest& one : listed) digests[one.file.substr(folder.size())] = one.digest;
  return IntegrityFile{
      folder + std::string(kIntegrityFile),
      nlohmann::json{{"algorithm", "sha256"}, {"files", std::move(digests)}}.dump(2) + "\n"};
}

Status write_integrity_file(Directory& directory, const IntegrityFile& integrity) {
  const auto file = SW_TRY(directory.create(integrity.path, integrity.text.size()));
  SW_TRY(file->write_at(0, std::as_bytes(std::span(integrity.text))));
  return file->sync();
}

Result<IntegrityChecked> check_integrity_file(const Checkpoint& checkpoint, const Workers& workers,
                                              Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  if (!directory.exists(kIntegrityFile)) return IntegrityChecked{};
  const auto listed = read_digests(directory);
  if (!listed) {
    SW_TRY(defects.report(std::unexpected(listed.error())));
    return IntegrityChecked{};
  }
  std::vector<std::uint64_t> bytes;
  for (const ListedDigest& one : *listed) {
    const auto version = directory.version(one.file);
    bytes.push_back(version ? version->size_bytes : 0);
  }
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      const ListedDigest& wanted = (*listed)[job];
      const auto found = sha256_of(directory, wanted.file);
      return result_of(found ? compare(*listed, wanted, *found)
                             : Status(std::unexpected(Error(found.error()).within(kIntegrityFile))),
                       defects);
    };
  };
  const auto results = SW_TRY(run_jobs({"comparing digests", bytes}, workers, make_worker));
  IntegrityChecked checked;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Status status = SW_TRY(status_in(results[i]));
    checked.right += status ? 1 : 0;
    checked.guarded.insert((*listed)[i].file);
    SW_TRY(defects.report(std::move(status)));
  }
  return checked;
}

}  // namespace shardwright
