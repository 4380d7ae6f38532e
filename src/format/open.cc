// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fail.h"
#include "format/common_state.h"
#include "format/dcp_metadata.h"
#include "format/decoded_items.h"
#include "format/fsdp_state.h"
#include "format/hf_reader.h"
#include "format/legacy_reader.h"
#include "format/rank_metadata.h"
#include "format/shadow_tensors.h"
#include "io/file_limit.h"
#include "io/source_files.h"
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostStateBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;

// Files that a process holds open beside the sources: outputs, libraries, the terminal.
constexpr std::uint64_t kReservedFiles = 64;

// How many source files may stay open; as many again are left to the outputs.
std::size_t most_open_files() {
  const std::uint64_t limit = raise_open_file_limit();
  const std::uint64_t room = limit > 2 * kReservedFiles ? limit - kReservedFiles : kReservedFiles;
  return static_cast<std::size_t>(room / 2);
}

Result<std::string> read_if_there(const Directory& directory, std::string_view path,
                                  std::uint64_t limit) {
  if (!directory.exists(path)) return std::string();
  return read_whole(directory, path, limit);
}

// Makes a file of the directory an entry of the catalog, so that it can be carried along.
StoredObject add_file(Checkpoint& checkpoint, const std::string& path, std::uint64_t size) {
  checkpoint.catalog.files.push_back(path);
  return {path, checkpoint.files->add(path), {0, size}};
}

// Ranges that leave their files are found now, not in the middle of a conversion.
Status check_ranges(const Checkpoint& checkpoint, Defects& defects) {
  const Catalog& catalog = checkpoint.catalog;
  std::vector<std::uint64_t> sizes(catalog.files.size(), 0);
  for (std::size_t i = 0; i < catalog.files.size(); ++i) {
    const auto file = checkpoint.files->get(static_cast<std::uint32_t>(i));
    if (file) sizes[i] = (*file)->size();
    if (!file) SW_TRY(defects.report(std::unexpected(file.error())));
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
      const Status inside = check(tensor.desc.name, tensor.chunks.file(c), tensor.chunks.range(c));
      if (inside) continue;
      SW_TRY(defects.report(inside));
      defects.lose(tensor.desc.name, c);
    }
  }
  for (const StoredObject& object : catalog.objects) {
    SW_TRY(defects.report(check(object.name, object.file, object.range)));
  }
  return {};
}

Status read_common_state(Checkpoint& checkpoint) {
  constexpr std::string_view kFile = "common.pt";
  const Directory& directory = *checkpoint.directory;
  const Catalog& catalog = checkpoint.catalog;
  const bool has_file = directory.exists(kFile);
  if (has_file) {
    checkpoint.common_state = SW_TRY(read_whole(directory, kFile, kMostStateBytes));
  }
  const auto entry = std::find_if(
      catalog.objects.begin(), catalog.objects.end(),
      [](const StoredObject& object) { return object.name == "common_state/shard_0_1"; });
  const bool has_entry = entry != catalog.objects.end();
  if (!has_file && has_entry) {
    if (entry->range.length > kMostStateBytes) {
      return fail(Code::kLimit, "entry {}: {} bytes, limit {}", entry->name, entry->range.length,
                  kMostStateBytes);
    }
    checkpoint.common_state.resize(static_cast<std::size_t>(entry->range.length));
    SW_TRY(checkpoint.files->read_at(entry->file, entry->range.offset,
                                     std::as_writable_bytes(std::span(checkpoint.common_state))));
  }
  if (!has_file && !has_entry) return {};
  const CommonState state = SW_TRY(CommonState::read(checkpoint.common_state));
  checkpoint.arguments = state.arguments();
  return {};
}

// What a Megatron directory carries besides its entries.
Status list_companions(Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    if (entry.name == "run_config.yaml" || entry.name == "train_state.pt") {
      checkpoint.companions.emplace_back(entry.name,
                                         add_file(checkpoint, entry.name, entry.size_bytes));
    }
    if (!entry.is_directory || (entry.name != "tokenizer" && entry.name != "hf")) continue;
    for (const DirectoryEntry& inner : SW_TRY(list_hf_artifacts(directory, entry.name))) {
      const std::string path = entry.name + "/" + inner.name;
      if (path == "hf/source_keys.json") continue;
      const StoredObject object = add_file(checkpoint, path, inner.size_bytes);
      if (entry.name == "hf") {
        checkpoint.artifacts.emplace_back(inner.name, object);
      } else {
        checkpoint.companions.emplace_back(path, object);
      }
    }
  }
  return {};
}

// Of a checkpoint whose state is stored entry by entry.
Status read_entry_arguments(Checkpoint& checkpoint) {
  checkpoint.arguments = SW_TRY(read_fsdp_arguments(checkpoint.catalog, *checkpoint.files));
  return {};
}

Status open_dcp(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  const bool is_rank_local = !directory.exists(kDcpMetadata);
  DcpMetadataOptions options;
  options.defects = &defects;
  DcpMetadata metadata = SW_TRY(read_any_metadata(directory, options));
  checkpoint.catalog = std::move(metadata.catalog);
  // Transformed items are found by their tensors' names.
  if (metadata.transformed.empty()) fold_shadows(checkpoint.catalog);
  for (const std::string& path : checkpoint.catalog.files) checkpoint.files->add(path);
  SW_TRY(check_ranges(checkpoint, defects));
  SW_TRY(mark_transformed(metadata.transformed, checkpoint.catalog));
  SW_TRY(decode_objects(metadata.transformed, checkpoint.catalog, *checkpoint.files));
  if (is_rank_local) {
    checkpoint.notes = SW_TRY(settle_rank_objects(checkpoint.catalog, *checkpoint.files));
  }
  SW_TRY(defects.report(read_common_state(checkpoint)));
  if (checkpoint.arguments.empty()) SW_TRY(defects.report(read_entry_arguments(checkpoint)));
  checkpoint.hf_config = SW_TRY(read_if_there(directory, "hf/config.json", kMostTextBytes));
  checkpoint.source_keys = SW_TRY(read_if_there(directory, "hf/source_keys.json", kMostTextBytes));
  checkpoint.run_config = SW_TRY(read_if_there(directory, "run_config.yaml", kMostTextBytes));
  return list_companions(checkpoint);
}

Status open_hf(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  checkpoint.catalog = SW_TRY(read_hf_catalog(directory, *checkpoint.files, defects));
  checkpoint.hf_config = SW_TRY(read_if_there(directory, "config.json", kMostTextBytes));
  for (const DirectoryEntry& entry : SW_TRY(list_hf_artifacts(directory, ""))) {
    checkpoint.artifacts.emplace_back(entry.name,
                                      add_file(checkpoint, entry.name, entry.size_bytes));
  }
  return {};
}

Status open_container(Checkpoint& checkpoint, Defects& defects) {
  switch (checkpoint.location.container) {
    case Container::kHf:
      return open_hf(checkpoint, defects);
    case Container::kLegacy:
      return read_legacy(checkpoint, defects);
    case Container::kTorchDist:
    case Container::kDcp:
      break;
  }
  return open_dcp(checkpoint, defects);
}

}  // namespace

Result<Checkpoint> open_checkpoint(std::string_view path, Defects& defects) {
  Checkpoint checkpoint;
  checkpoint.location = SW_TRY(locate_checkpoint(path));
  checkpoint.directory = SW_TRY(open_local_directory(checkpoint.location.path));
  checkpoint.files = std::make_shared<SourceFiles>(*checkpoint.directory,
                                                   std::vector<std::string>(), most_open_files());
  const Status status = open_container(checkpoint, defects);
  if (!status) {
    Status located = std::unexpected(Error(status.error()).within(checkpoint.location.path));
    SW_TRY(defects.report(std::move(located)));
  }
  return checkpoint;
}

Result<Checkpoint> open_checkpoint(std::string_view path) {
  Defects first;
  return open_checkpoint(path, first);
}

}  // namespace shardwright
