// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "base/text.h"
#include "codec/safetensors_header.h"
#include "format/hf/hf_shards.h"
#include "format/hf_index.h"
#include "format/model_file.h"
#include "format/weight_files.h"
#include "format/weight_names.h"

namespace shardwright {
namespace {

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

Result<SafetensorsHeader> read_header_of(const Directory& directory, const std::string& path,
                                         std::uint32_t number, SourceFiles& files) {
  const ModelFile opened = SW_TRY(open_model_file(directory, path, number, files));
  return read_safetensors_header(*opened.file);
}

// `offsets`: of each tensor within the whole one, for files that hold shards; else as many as
// tensors were there before.
Status add_tensors(SafetensorsHeader header, const std::string& path, std::uint32_t number,
                   Catalog& catalog, std::vector<Dims>& offsets) {
  const std::optional<ShardOffsets> shards = SW_TRY(read_shard_offsets(header, path));
  if (shards.has_value() != (offsets.size() == catalog.tensors.size()) &&
      !catalog.tensors.empty()) {
    return fail(
        Code::kMetadataCorrupt,
        "{}: found shards beside whole tensors, expected one or the other; remove the files "
        "of an earlier save",
        path);
  }
  for (auto& [desc, range] : header.tensors) {
    if (shards) offsets.push_back(shards->find(desc.name)->second);
    ChunkList chunks(desc.shape.size());
    chunks.push_back({Box::whole(desc.shape), number, range, {}});
    catalog.tensors.push_back({std::move(desc), std::move(chunks), Encoding::kRaw});
  }
  return {};
}

// A key that is indexed but absent loads as garbage or not at all, one that is present but not
// indexed is silently ignored.
Status check_against_index(const Catalog& catalog, const HfIndex& index, std::string_view name,
                           Defects& defects) {
  const HfIndexDifference difference = compare_with_index(catalog, index);
  const std::vector<std::string> ghosts = difference.not_where_listed();
  const std::vector<std::string> unlisted = difference.not_listed_there();
  if (!ghosts.empty()) {
    SW_TRY(
        defects.report(fail(Code::kIndexMismatch, "{}: {} keys are not in the files it names: {}",
                            name, ghosts.size(), name_list(ghosts))));
  }
  if (!unlisted.empty()) {
    SW_TRY(defects.report(fail(Code::kIndexMismatch,
                               "{}: does not list {} keys of the files it names: {}", name,
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
  // An adapter beside a model is none of its files.
  const auto is_of_adapter = [](const std::string& file) {
    return file.starts_with("adapter_model");
  };
  if (!std::ranges::all_of(files, is_of_adapter)) std::erase_if(files, is_of_adapter);
  return files;
}

Status add_safetensors(const Directory& directory, const std::string& path, SourceFiles& files,
                       Catalog& catalog) {
  std::vector<Dims> offsets;
  const std::uint32_t number = add_model_file(path, files, catalog);
  SafetensorsHeader header = SW_TRY(read_header_of(directory, path, number, files));
  SW_TRY(add_tensors(std::move(header), path, number, catalog, offsets));
  if (std::ranges::all_of(offsets, [](const Dims& offset) {
        return std::ranges::all_of(offset, [](std::int64_t place) { return place == 0; });
      })) {
    return {};
  }
  return fail(Code::kUnsupportedFormat,
              "{}: found pieces of tensors, which torch's HuggingFaceStorageWriter cut, expected "
              "whole ones",
              path);
}

Result<WeightChoice> choose_weights(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  WeightChoice choice;
  std::vector<std::string> all = SW_TRY(list_weight_files(directory));
  const std::optional<std::string_view> index_file = index_file_in(directory);
  if (index_file) {
    Result<HfIndex> index = read_hf_index(directory, *index_file);
    if (!index) {
      SW_TRY(defects.report(std::unexpected(index.error())));
    } else if (!SW_TRY(is_stale_index(directory, *index_file, *index))) {
      choice.index = *std::move(index);
      choice.index_file = *index_file;
    } else {
      checkpoint.notes.push_back(stale_index_note(*index_file));
    }
  }
  if (!choice.index) {
    if (std::string note = take_variants(all); !note.empty()) {
      checkpoint.notes.push_back(std::move(note));
    }
    SW_TRY(check_unindexed_files(all, checkpoint, defects));
    choice.files = std::move(all);
    return choice;
  }
  std::set<std::string> named;
  for (const auto& [key, file] : choice.index->files) named.insert(file);
  choice.files.assign(named.begin(), named.end());
  if (std::string note = unnamed_files_note(choice.index_file, all, choice.files); !note.empty()) {
    checkpoint.notes.push_back(std::move(note));
  }
  return choice;
}

Result<Catalog> read_hf_catalog(const Directory& directory, WeightChoice choice, SourceFiles& files,
                                Defects& defects) {
  Catalog catalog;
  std::vector<Dims> offsets;
  std::unordered_set<std::string_view> unread;  // of names
  const std::vector<std::string>& paths = choice.files;
  std::vector<std::uint32_t> numbers;
  for (const std::string& path : paths) numbers.push_back(add_model_file(path, files, catalog));
  const auto read = [&](std::size_t i) {
    return read_header_of(directory, paths[i], numbers[i], files);
  };
  const auto take = [&](std::size_t i, Result<SafetensorsHeader> header) -> Status {
    const Status added =
        header ? add_tensors(*std::move(header), paths[i], numbers[i], catalog, offsets)
               : std::unexpected(header.error());
    if (!added) unread.insert(paths[i]);
    return defects.report(added);
  };
  SW_TRY(read_ahead(paths.size(), read, take));
  // What an unreadable file would have held is not missing besides.
  if (choice.index) {
    std::erase_if(choice.index->files,
                  [&](const auto& entry) { return unread.contains(entry.second); });
  }
  catalog.tensors.shrink_to_fit();
  if (!offsets.empty()) SW_TRY(join_shards(offsets, catalog));
  SW_TRY(refuse_duplicates(catalog, defects));
  if (choice.index) {
    SW_TRY(check_against_index(catalog, *choice.index, choice.index_file, defects));
  }
  SW_TRY(defects.report(check_consolidated_scalars(directory, catalog, files)));
  return catalog;
}

}  // namespace shardwright
