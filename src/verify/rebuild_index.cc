// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/fail.h"
#include "format/hf_index.h"
#include "format/safetensors_reader.h"
#include "format/weight_files.h"
#include "format/weight_names.h"
#include "io/replace_file.h"
#include "io/source_files.h"
#include "remote/open_path.h"
#include "shardwright/verify.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostIndexBytes = std::uint64_t{256} << 20;

bool has_model_name(std::string_view file) {
  return file.starts_with(kModelStem) || file.starts_with(kDiffusersStem) ||
         file.starts_with("pytorch_model");
}

// What an index of these files is called.
std::string_view usual_index_of(const std::vector<std::string>& files) {
  const bool is_of_diffusers = std::ranges::any_of(
      files, [](const std::string& file) { return file.starts_with(kDiffusersStem); });
  return index_file_of(is_of_diffusers ? kDiffusersStem : kModelStem);
}

// The model's files: those with its name and those that the old index names. Other safetensors
// files (another tool's copy of the weights, an adapter) are not the index's.
std::vector<std::string> choose_files(const std::vector<std::string>& all, const HfIndex& old,
                                      std::vector<std::string>& left_out) {
  std::vector<std::string> chosen;
  for (const std::string& file : all) {
    const bool is_named =
        std::ranges::any_of(old.files, [&](const auto& entry) { return entry.second == file; });
    (is_named || has_model_name(file) ? chosen : left_out).push_back(file);
  }
  if (chosen.empty()) std::swap(chosen, left_out);
  return chosen;
}

Status refuse_duplicates(const Catalog& catalog) {
  std::unordered_map<std::string_view, std::uint32_t> seen;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto [first, is_new] = seen.emplace(tensor.desc.name, tensor.chunks.file(0));
    if (is_new) continue;
    return fail(Code::kDuplicateName,
                "tensor {}: found in both {} and {}; move the file away that is not the model's",
                tensor.desc.name, catalog.files[first->second],
                catalog.files[tensor.chunks.file(0)]);
  }
  return {};
}

}  // namespace

Result<IndexReport> rebuild_index(const std::string& path) {
  const std::unique_ptr<Directory> directory = SW_TRY(open_directory(path));
  IndexReport report;
  const std::vector<std::string> all = SW_TRY(list_weight_files(*directory));
  const std::optional<std::string_view> present = index_file_in(*directory);
  const std::string_view name = present.value_or(usual_index_of(all));
  report.path = fmt::format("{}/{}", path, name);
  std::string old_bytes;
  HfIndex old;
  const bool has_old = present.has_value();
  if (has_old) {
    old_bytes = SW_TRY(read_whole(*directory, name, kMostIndexBytes));
    // One that cannot be read says nothing.
    if (auto read = read_hf_index(*directory, name)) old = *std::move(read);
  }
  if (all.empty()) {
    return fail(Code::kUnknownFormat, "{} holds no safetensors files", path);
  }
  SourceFiles files(*directory, {}, 1);
  Catalog catalog;
  const std::vector<std::string> chosen = choose_files(all, old, report.left_out);
  SW_TRY(check_numbered_files(*directory, chosen));
  for (const std::string& file : chosen) {
    SW_TRY(add_safetensors(*directory, file, files, catalog));
  }
  SW_TRY(refuse_duplicates(catalog));
  HfIndexDifference difference = compare_with_index(catalog, old);
  report.ghosts = std::move(difference.ghosts);
  report.unlisted = std::move(difference.unlisted);
  report.misplaced = std::move(difference.misplaced);
  report.tensors = catalog.tensors.size();
  report.files = catalog.files.size();
  for (const StoredTensor& tensor : catalog.tensors) {
    report.total_bytes += tensor.chunks.range(0).length;
  }
  report.was_right = has_old && report.ghosts.empty() && report.unlisted.empty() &&
                     report.misplaced.empty() && old.total_bytes == report.total_bytes;
  if (report.was_right) return report;
  if (is_remote_path(path)) {
    return fail(Code::kPermission,
                "{}: {} ({} of its tensors in no file, {} not listed, {} in another file than it "
                "says), and "
                "remote folders are only read; rebuild it in a copy on this machine",
                report.path, has_old ? "is wrong" : "is not there", report.ghosts.size(),
                report.unlisted.size(), report.misplaced.size());
  }
  std::optional<Backup> backup;
  if (has_old) {
    backup.emplace(SW_TRY(Backup::write(report.path, old_bytes)));
    report.backup = backup->path();
  }
  const Status replaced = replace_file(report.path, write_hf_index(catalog));
  if (replaced) return report;
  Error error = replaced.error();
  if (backup && !backup->is_needless()) {
    error.message += translated("; the old one is {}", backup->path());
  }
  return std::unexpected(std::move(error));
}

}  // namespace shardwright
