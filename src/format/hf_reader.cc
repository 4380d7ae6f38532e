// SPDX-License-Identifier: Apache-2.0
#include "format/hf_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "codec/safetensors_header.h"
#include "format/hf_index.h"

namespace shardwright {
namespace {

// Weights in any form: what must not be carried along as an artifact.
constexpr std::array<std::string_view, 10> kWeightEndings = {
    ".safetensors", ".safetensors.index.json",
    ".bin",         ".bin.index.json",
    ".pt",          ".pth",
    ".gguf",        ".h5",
    ".msgpack",     ".onnx"};

// torch's writer for Hugging Face files cuts tensors and notes in each file where its pieces begin;
// files of whole tensors carry the note too, with zeros.
Status refuse_pieces(const std::string& path, const SafetensorsHeader& header) {
  const auto note = header.metadata.find("DCP_SHARDING_INFO");
  if (note == header.metadata.end()) return {};
  const nlohmann::json pieces = SW_TRY(parse_json(note->second, path));
  if (!pieces.is_object()) return {};
  for (const auto& [name, piece] : pieces.items()) {
    if (!piece.is_object() || !piece.contains("saved_offsets")) continue;
    const nlohmann::json& offsets = piece["saved_offsets"];
    if (std::ranges::all_of(offsets, [](const auto& offset) { return offset == 0; })) continue;
    return fail(Code::kUnsupportedFormat,
                "{}: found a piece of tensor {}, which torch's HuggingFaceStorageWriter cut, "
                "expected whole tensors; join them with consolidate_safetensors_files",
                path, name);
  }
  return {};
}

Status refuse_duplicates(const Catalog& catalog, Defects& defects) {
  std::unordered_map<std::string_view, std::uint32_t> seen;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto [first, is_new] = seen.emplace(tensor.desc.name, tensor.chunks.file(0));
    if (is_new) continue;
    SW_TRY(defects.report(fail(Code::kDuplicateName, "tensor {}: found in both {} and {}",
                               tensor.desc.name, catalog.files[first->second],
                               catalog.files[tensor.chunks.file(0)])));
  }
  return {};
}

// A key that is indexed but absent loads as garbage or not at all, one that is present but not
// indexed is silently ignored.
Status check_against_index(const Catalog& catalog, const HfIndex& index, Defects& defects) {
  const HfIndexDifference difference = compare_with_index(catalog, index);
  const std::vector<std::string> ghosts = difference.not_where_listed();
  const std::vector<std::string> unlisted = difference.not_listed_there();
  if (!ghosts.empty()) {
    SW_TRY(
        defects.report(fail(Code::kIndexMismatch, "{}: {} keys are not in the files it names: {}",
                            kHfIndexFile, ghosts.size(), name_list(ghosts))));
  }
  if (!unlisted.empty()) {
    SW_TRY(defects.report(fail(Code::kIndexMismatch,
                               "{}: does not list {} keys of the files it names: {}", kHfIndexFile,
                               unlisted.size(), name_list(unlisted))));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> list_weight_files(const Directory& directory) {
  std::vector<std::string> files;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    if (!entry.is_directory && entry.name.ends_with(".safetensors")) files.push_back(entry.name);
  }
  return files;
}

Status add_safetensors(const std::string& path, SourceFiles& files, Catalog& catalog) {
  const std::uint32_t file = files.add(path);
  catalog.files.push_back(path);
  const std::shared_ptr<const ReadableFile> open = SW_TRY(files.get(file));
  const SafetensorsHeader header = SW_TRY(read_safetensors_header(*open));
  SW_TRY(refuse_pieces(path, header));
  for (const SafetensorsTensor& entry : header.tensors) {
    StoredTensor tensor{entry.desc, ChunkList(entry.desc.shape.size()), Encoding::kRaw};
    tensor.chunks.push_back({Box::whole(entry.desc.shape), file, entry.range, {}});
    catalog.tensors.push_back(std::move(tensor));
  }
  return {};
}

Result<Catalog> read_hf_catalog(const Directory& directory, SourceFiles& files, Defects& defects) {
  HfIndex index;
  bool has_index = directory.exists(kHfIndexFile);
  if (has_index) {
    Result<HfIndex> read = read_hf_index(directory);
    has_index = read.has_value();
    if (read) index = *std::move(read);
    if (!has_index) SW_TRY(defects.report(std::unexpected(read.error())));
  }
  std::vector<std::string> names;
  if (has_index) {
    for (const auto& [key, file] : index.files) names.push_back(file);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  } else {
    names = SW_TRY(list_weight_files(directory));
  }
  Catalog catalog;
  for (const std::string& name : names) {
    SW_TRY(defects.report(add_safetensors(name, files, catalog)));
  }
  SW_TRY(refuse_duplicates(catalog, defects));
  if (has_index) SW_TRY(check_against_index(catalog, index, defects));
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
