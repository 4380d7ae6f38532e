// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fail.h"
#include "format/common_state.h"
#include "format/dcp_metadata.h"
#include "format/hf_reader.h"
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostStateBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;

Result<std::string> read_if_there(const Directory& directory, std::string_view path,
                                  std::uint64_t limit) {
  if (!directory.exists(path)) return std::string();
  return read_whole(directory, path, limit);
}

// Makes a file of the directory an entry of the catalog, so that it can be carried along.
StoredObject add_file(Catalog& catalog, const std::string& path, std::uint64_t size) {
  const std::uint32_t file = static_cast<std::uint32_t>(catalog.files.size());
  catalog.files.push_back(path);
  return {path, file, {0, size}};
}

Status refuse_transformed(const DcpMetadata& metadata) {
  if (metadata.transformed.empty()) return {};
  const TransformedItem& item = metadata.transformed.front();
  std::string names;
  for (const std::string& descriptor : item.descriptors) {
    names += (names.empty() ? "" : ", ") + descriptor;
  }
  return fail(Code::kItemTransformed,
              "entry {}: found it stored through {} ({} such entries), expected plain items; "
              "re-save it without stream extensions",
              item.name, names, metadata.transformed.size());
}

// Ranges that leave their files are found now, not in the middle of a conversion.
Status check_ranges(const Checkpoint& checkpoint) {
  const Catalog& catalog = checkpoint.catalog;
  std::vector<std::uint64_t> sizes(catalog.files.size(), 0);
  for (std::size_t i = 0; i < catalog.files.size(); ++i) {
    const std::unique_ptr<ReadableFile> file = SW_TRY(checkpoint.directory->open(catalog.files[i]));
    sizes[i] = file->size();
  }
  const auto check = [&](std::string_view name, std::uint32_t file, ByteRange range) -> Status {
    if (range.offset <= sizes[file] && range.length <= sizes[file] - range.offset) return {};
    return fail(Code::kShortRead,
                "{}: entry {} ends at byte {}, but the file has {}; it was cut or does not belong "
                "to this metadata",
                catalog.files[file], name, range.offset + range.length, sizes[file]);
  };
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
      SW_TRY(check(tensor.desc.name, tensor.chunks.file(c), tensor.chunks.range(c)));
    }
  }
  for (const StoredObject& object : catalog.objects) {
    SW_TRY(check(object.name, object.file, object.range));
  }
  return {};
}

Status read_common_state(Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  checkpoint.common_state = SW_TRY(read_if_there(directory, "common.pt", kMostStateBytes));
  const Catalog& catalog = checkpoint.catalog;
  const auto entry = std::find_if(
      catalog.objects.begin(), catalog.objects.end(),
      [](const StoredObject& object) { return object.name == "common_state/shard_0_1"; });
  if (checkpoint.common_state.empty() && entry != catalog.objects.end()) {
    if (entry->range.length > kMostStateBytes) {
      return fail(Code::kLimit, "entry {}: {} bytes, limit {}", entry->name, entry->range.length,
                  kMostStateBytes);
    }
    const std::unique_ptr<ReadableFile> file = SW_TRY(directory.open(catalog.files[entry->file]));
    checkpoint.common_state.resize(static_cast<std::size_t>(entry->range.length));
    SW_TRY(file->read_at(entry->range.offset,
                         std::as_writable_bytes(std::span(checkpoint.common_state))));
  }
  if (checkpoint.common_state.empty()) return {};
  const CommonState state = SW_TRY(CommonState::read(checkpoint.common_state));
  checkpoint.arguments = state.arguments();
  return {};
}

// What a Megatron directory carries besides its entries.
Status list_companions(Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  Catalog& catalog = checkpoint.catalog;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    if (entry.name == "run_config.yaml" || entry.name == "train_state.pt") {
      checkpoint.companions.emplace_back(entry.name,
                                         add_file(catalog, entry.name, entry.size_bytes));
    }
    if (!entry.is_directory || (entry.name != "tokenizer" && entry.name != "hf")) continue;
    for (const DirectoryEntry& inner : SW_TRY(list_hf_artifacts(directory, entry.name))) {
      const std::string path = entry.name + "/" + inner.name;
      if (path == "hf/source_keys.json") continue;
      const StoredObject object = add_file(catalog, path, inner.size_bytes);
      if (entry.name == "hf") {
        checkpoint.artifacts.emplace_back(inner.name, object);
      } else {
        checkpoint.companions.emplace_back(path, object);
      }
    }
  }
  return {};
}

Status open_dcp(Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  const std::unique_ptr<ReadableFile> file = SW_TRY(directory.open(".metadata"));
  DcpMetadata metadata = SW_TRY(read_dcp_metadata(*file));
  SW_TRY(refuse_transformed(metadata));
  checkpoint.catalog = std::move(metadata.catalog);
  SW_TRY(check_ranges(checkpoint));
  SW_TRY(read_common_state(checkpoint));
  checkpoint.hf_config = SW_TRY(read_if_there(directory, "hf/config.json", kMostTextBytes));
  checkpoint.source_keys = SW_TRY(read_if_there(directory, "hf/source_keys.json", kMostTextBytes));
  checkpoint.run_config = SW_TRY(read_if_there(directory, "run_config.yaml", kMostTextBytes));
  return list_companions(checkpoint);
}

Status open_hf(Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  checkpoint.catalog = SW_TRY(read_hf_catalog(directory));
  checkpoint.hf_config = SW_TRY(read_if_there(directory, "config.json", kMostTextBytes));
  for (const DirectoryEntry& entry : SW_TRY(list_hf_artifacts(directory, ""))) {
    checkpoint.artifacts.emplace_back(entry.name,
                                      add_file(checkpoint.catalog, entry.name, entry.size_bytes));
  }
  return {};
}

}  // namespace

Result<Checkpoint> open_checkpoint(std::string_view path) {
  Checkpoint checkpoint;
  checkpoint.location = SW_TRY(locate_checkpoint(path));
  checkpoint.directory = SW_TRY(open_local_directory(checkpoint.location.path));
  Status status =
      checkpoint.location.container == Container::kHf ? open_hf(checkpoint) : open_dcp(checkpoint);
  if (!status) {
    return std::unexpected(std::move(status).error().within(checkpoint.location.path));
  }
  return checkpoint;
}

}  // namespace shardwright
