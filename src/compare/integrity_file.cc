// SPDX-License-Identifier: Apache-2.0
#include "compare/integrity_file.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostIntegrityBytes = std::uint64_t{256} << 20;

Result<std::vector<ListedDigest>> read_integrity_file(const Directory& directory) {
  const std::string text = SW_TRY(read_whole(directory, kIntegrityFile, kMostIntegrityBytes));
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

}  // namespace

GuardFile integrity_file_of(const std::string& folder, std::span<const ListedDigest> digests) {
  nlohmann::json files = nlohmann::json::object();
  for (const ListedDigest& one : digests) files[one.file.substr(folder.size())] = one.digest;
  return {folder + std::string(kIntegrityFile),
          nlohmann::json{{"algorithm", "sha256"}, {"files", std::move(files)}}.dump(2) + "\n"};
}

Result<ListedChecked> check_integrity_file(const Checkpoint& checkpoint, const Workers& workers,
                                           Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  if (!directory.exists(kIntegrityFile)) return ListedChecked{};
  const auto listed = read_integrity_file(directory);
  if (listed) return check_listed(directory, *listed, kIntegrityFile, workers, defects);
  SW_TRY(defects.report(std::unexpected(listed.error())));
  return ListedChecked{};
}

}  // namespace shardwright
