// SPDX-License-Identifier: Apache-2.0
#include "format/dcp/dcp_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/stand_in.h"
#include "dcp/dcp_metadata.h"
#include "dcp/decoded_items.h"
#include "dcp/item_places.h"
#include "dcp/named_replicas.h"
#include "dcp/rank_metadata.h"
#include "format/carried_files.h"
#include "format/common_state_file.h"
#include "format/fsdp_dtensor/fsdp_state.h"
#include "format/pickle_files.h"
#include "format/tensor_ranks.h"
#include "format/unfinished_download.h"
#include "io/source_files.h"
#include "state/common_state.h"
#include "state/document_names.h"
#include "state/recorded_run.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

// The sizes of the catalog's files, from the listings of their folders: many ranks open the same
// checkpoint, and each needs few of its files. One that is not listed as a file is opened, which
// says what is wrong with it; it then has no size.
Result<std::vector<std::optional<std::uint64_t>>> file_sizes(const Checkpoint& checkpoint,
                                                             Defects& defects) {
  const std::vector<std::string>& files = checkpoint.catalog.files;
  std::map<std::string_view, std::map<std::string, std::uint64_t>> folders;
  std::vector<std::optional<std::uint64_t>> sizes(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::size_t slash = files[i].rfind('/');
    const bool is_top = slash == std::string::npos;
    const std::string_view folder = is_top ? "" : std::string_view(files[i]).substr(0, slash);
    const auto [listed, is_new] = folders.try_emplace(folder);
    if (is_new) {
      const auto entries = checkpoint.directory->list(folder);
      for (const DirectoryEntry& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
        const bool is_file = !entry.is_directory && !entry.problem && entry.size_bytes > 0;
        if (is_file) listed->second.emplace(entry.name, entry.size_bytes);
      }
    }
    const std::string name = is_top ? files[i] : files[i].substr(slash + 1);
    const auto found = listed->second.find(name);
    if (found != listed->second.end()) {
      sizes[i] = found->second;
      if (listed->second.contains(name + std::string(kUnfilledEnding))) {
        SW_TRY(defects.report(check_downloaded(*checkpoint.directory, files[i])));
      }
      continue;
    }
    const auto file = checkpoint.files->get(static_cast<std::uint32_t>(i));
    if (file) sizes[i] = (*file)->size();
    if (!file) {
      SW_TRY(defects.report(
          std::unexpected(with_download_hint(file.error(), *checkpoint.directory, files[i]))));
    }
  }
  return sizes;
}

// Ranges that leave their files are found now, not in the middle of a conversion.
Status check_ranges(const Checkpoint& checkpoint, Defects& defects) {
  const Catalog& catalog = checkpoint.catalog;
  const auto sizes = SW_TRY(file_sizes(checkpoint, defects));
  const auto refuse_stand_in_at = [&](std::uint32_t file) -> Status {
    const auto open = SW_TRY(checkpoint.files->get(file));
    return refuse_stand_in(Code::kShortRead, *open, "a .distcp file", Contents::kBinary);
  };
  const auto check = [&](std::string_view name, std::uint32_t file, ByteRange range) -> Status {
    if (!sizes[file]) return {};  // it was told
    const std::uint64_t size = *sizes[file];
    if (range.offset <= size && range.length <= size - range.offset) return {};
    SW_TRY(refuse_stand_in_at(file));
    return fail(Code::kShortRead,
                "{}: entry {} ends at byte {}, but the file has {}; it was cut or does not belong "
                "to this metadata",
                catalog.files[file], name, range.offset + range.length, size);
  };
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
      const std::uint32_t file = tensor.chunks.file(c);
      const Status inside = check(tensor.desc.name, file, tensor.chunks.range(c));
      if (inside && sizes[file]) continue;
      SW_TRY(defects.report(inside));
      defects.lose(tensor.desc.name, c);
    }
  }
  for (const StoredObject& object : catalog.objects) {
    SW_TRY(defects.report(check(object.name, object.file, object.range)));
  }
  return {};
}

// Of a checkpoint whose state is stored entry by entry.
Status read_entry_arguments(Checkpoint& checkpoint) {
  checkpoint.arguments = SW_TRY(read_fsdp_arguments(checkpoint.catalog, *checkpoint.files));
  return {};
}

// `.metadata` is read without running anything and goes into no other checkpoint: a conversion is
// told, a check finds it.
Status judge_metadata(const pickle::Audit& audit, Checkpoint& checkpoint, Defects& defects) {
  const PickleReport report{std::string(kDcpMetadata), audit};
  for (const Error& error : report.errors()) {
    if (defects.collects()) {
      SW_TRY(defects.report(std::unexpected(error)));
    } else {
      checkpoint.notes.push_back(error.message);
    }
  }
  if (const std::string warning = report.warning(); !warning.empty()) {
    checkpoint.notes.push_back(warning);
  }
  return {};
}

}  // namespace

Status read_dcp(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  const bool is_rank_local = !directory.exists(kDcpMetadata);
  DcpMetadataOptions options;
  options.defects = &defects;
  options.all_parts = defects.collects();
  DcpMetadata metadata = SW_TRY(read_any_metadata(directory, options));
  SW_TRY(judge_metadata(metadata.audit, checkpoint, defects));
  checkpoint.catalog = std::move(metadata.catalog);
  if (!is_rank_local) {
    std::string otherwise = contradicting_ranks(directory, checkpoint.catalog);
    if (!otherwise.empty()) checkpoint.notes.push_back(std::move(otherwise));
  }
  // By the stored names, which replicas lose.
  SW_TRY(mark_transformed(metadata.transformed, checkpoint.catalog));
  fold_replicas(checkpoint.catalog);
  for (const std::string& path : checkpoint.catalog.files) checkpoint.files->add(path);
  SW_TRY(check_ranges(checkpoint, defects));
  SW_TRY(check_item_places(checkpoint.catalog, defects));
  SW_TRY(decode_objects(metadata.transformed, checkpoint.catalog, *checkpoint.files));
  if (is_rank_local) {
    for (std::string& note : SW_TRY(settle_rank_objects(checkpoint.catalog, *checkpoint.files))) {
      checkpoint.notes.push_back(std::move(note));
    }
  }
  SW_TRY(defects.report(read_common_state(checkpoint)));
  if (checkpoint.arguments.empty()) SW_TRY(defects.report(read_entry_arguments(checkpoint)));
  const Status carried = read_carried(checkpoint, defects);
  const TensorRanks ranks = tensor_ranks_of(checkpoint);
  for (std::string& note : describe_replicas(checkpoint.catalog, ranks)) {
    checkpoint.notes.push_back(std::move(note));
  }
  return carried;
}

}  // namespace shardwright
