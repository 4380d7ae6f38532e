// SPDX-License-Identifier: Apache-2.0
#include "format/hf_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/fail.h"
#include "codec/json_text.h"
#include "codec/safetensors_header.h"
#include "format/hf_shards.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostIndexBytes = std::uint64_t{256} << 20;
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::size_t kNamesShown = 20;

// Weights in any form: what must not be carried along as an artifact.
constexpr std::array<std::string_view, 10> kWeightEndings = {
    ".safetensors", ".safetensors.index.json",
    ".bin",         ".bin.index.json",
    ".pt",          ".pth",
    ".gguf",        ".h5",
    ".msgpack",     ".onnx"};

using KeyToFile = std::map<std::string, std::string, std::less<>>;

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
  return text;
}

Result<KeyToFile> read_index(const Directory& directory) {
  const std::string text = SW_TRY(read_whole(directory, kIndex, kMostIndexBytes));
  const nlohmann::json document = SW_TRY(parse_json(text, kIndex));
  if (!document.is_object() || !document.contains("weight_map") ||
      !document["weight_map"].is_object()) {
    return fail(Code::kJsonCorrupt, "{}: found no weight_map object", kIndex);
  }
  KeyToFile files;
  for (const auto& [key, file] : document["weight_map"].items()) {
    if (!file.is_string()) {
      return fail(Code::kJsonCorrupt, "{}: the file of {} is no string", kIndex, key);
    }
    files.emplace(key, file.get<std::string>());
  }
  return files;
}

Result<std::vector<std::string>> list_weight_files(const Directory& directory) {
  std::vector<std::string> files;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    if (!entry.is_directory && entry.name.ends_with(".safetensors")) files.push_back(entry.name);
  }
  return files;
}

// `offsets`: of each tensor within the whole one, for files that hold shards; else as many as
// tensors were there before.
Status add_tensors(const std::string& path, SourceFiles& files, Catalog& catalog,
                   std::vector<Dims>& offsets) {
  const std::uint32_t file = files.add(path);
  catalog.files.push_back(path);
  const std::shared_ptr<const ReadableFile> open = SW_TRY(files.get(file));
  const SafetensorsHeader header = SW_TRY(read_safetensors_header(*open));
  const std::optional<ShardOffsets> shards = SW_TRY(read_shard_offsets(header, path));
  if (shards.has_value() != (offsets.size() == catalog.tensors.size()) &&
      !catalog.tensors.empty()) {
    return fail(
        Code::kMetadataCorrupt,
        "{}: found shards beside whole tensors, expected one or the other; remove the files "
        "of an earlier save",
        path);
  }
  for (const SafetensorsTensor& entry : header.tensors) {
    StoredTensor tensor{entry.desc, ChunkList(entry.desc.shape.size()), Encoding::kRaw};
    tensor.chunks.push_back({Box::whole(entry.desc.shape), file, entry.range, {}});
    catalog.tensors.push_back(std::move(tensor));
    if (shards) offsets.push_back(shards->find(entry.desc.name)->second);
  }
  return {};
}

// The index and the headers must tell the same: a key that is indexed but absent loads as garbage
// or not at all, one that is present but not indexed is silently ignored.
Status check_against_index(const Catalog& catalog, const KeyToFile& index) {
  std::vector<std::string> ghosts;
  std::vector<std::string> unlisted;
  std::unordered_map<std::string_view, std::string_view> stored;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string& file = catalog.files[tensor.chunks.file(0)];
    stored.emplace(tensor.desc.name, file);
    const auto listed = index.find(tensor.desc.name);
    if (listed == index.end() || listed->second != file) unlisted.push_back(tensor.desc.name);
  }
  for (const auto& [key, file] : index) {
    const auto found = stored.find(key);
    if (found == stored.end() || found->second != file) ghosts.push_back(key);
  }
  if (!ghosts.empty()) {
    return fail(Code::kIndexMismatch, "{}: {} keys are not in the files it names: {}", kIndex,
                ghosts.size(), join_names(ghosts));
  }
  if (!unlisted.empty()) {
    return fail(Code::kIndexMismatch, "{}: does not list {} keys of the files it names: {}", kIndex,
                unlisted.size(), join_names(unlisted));
  }
  return {};
}

Status refuse_duplicates(const Catalog& catalog) {
  std::unordered_map<std::string_view, std::uint32_t> seen;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto [first, is_new] = seen.emplace(tensor.desc.name, tensor.chunks.file(0));
    if (!is_new) {
      return fail(Code::kDuplicateName, "tensor {}: found in both {} and {}", tensor.desc.name,
                  catalog.files[first->second], catalog.files[tensor.chunks.file(0)]);
    }
  }
  return {};
}

}  // namespace

Result<Catalog> read_hf_catalog(const Directory& directory, SourceFiles& files) {
  KeyToFile index;
  std::vector<std::string> names;
  const bool has_index = directory.exists(kIndex);
  if (has_index) {
    index = SW_TRY(read_index(directory));
    for (const auto& [key, file] : index) names.push_back(file);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  } else {
    names = SW_TRY(list_weight_files(directory));
  }
  Catalog catalog;
  std::vector<Dims> offsets;
  for (const std::string& name : names) SW_TRY(add_tensors(name, files, catalog, offsets));
  if (!offsets.empty()) SW_TRY(join_shards(offsets, catalog));
  SW_TRY(refuse_duplicates(catalog));
  if (has_index) SW_TRY(check_against_index(catalog, index));
  SW_TRY(check_consolidated_scalars(directory, catalog, files));
  return catalog;
}

Result<std::vector<DirectoryEntry>> list_hf_artifacts(const Directory& directory,
                                                      std::string_view folder) {
  std::vector<DirectoryEntry> artifacts;
  for (DirectoryEntry& entry : SW_TRY(directory.list(folder))) {
    const bool is_weight =
        std::any_of(kWeightEndings.begin(), kWeightEndings.end(),
                    [&](std::string_view ending) { return entry.name.ends_with(ending); });
    if (entry.is_directory || is_weight || entry.name.starts_with(".")) continue;
    artifacts.push_back(std::move(entry));
  }
  return artifacts;
}

}  // namespace shardwright
