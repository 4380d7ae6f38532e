// SPDX-License-Identifier: Apache-2.0
#include "verify/run_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "codec/safetensors_header.h"
#include "dcp/torch_dist_layout.h"
#include "dcp/torch_items.h"
#include "format/chunk_list.h"
#include "format/formats.h"
#include "format/hf_index.h"
#include "format/iteration_folder.h"
#include "format/tracker.h"
#include "format/weight_files.h"
#include "format/weight_names.h"
#include "io/file_window.h"
#include "io/source_files.h"
#include "layout/texts.h"
#include "remote/open_path.h"
#include "verify/findings.h"

namespace shardwright {
namespace {

void check_iteration(const Checkpoint& checkpoint, VerifyReport& report) {
  const std::optional<std::int64_t> folder = checkpoint.location.iteration;
  const bool has_state =
      checkpoint.location.traits.has_state_entries || !checkpoint.common_state.empty();
  if (!has_state || !folder) return;
  const auto state = form_of(checkpoint).iteration(checkpoint);
  if (!state) return;  // it was reported that it can't be read
  const std::optional<std::int64_t> saved = *state;
  if (!saved) {
    // Legacy files of weights alone need none.
    if (!checkpoint.location.traits.has_chunk_list) return;
    report.notes.push_back(
        translated("{}: its state does not say which iteration it is of, so the folder's name is "
                   "not held against it",
                   checkpoint.location.path));
    return;
  }
  if (*saved == *folder) {
    report.proven.push_back(phrase("proven.iteration", {{"iteration", *saved}}));
    return;
  }
  add_finding(report, Code::kIterationMismatch, checkpoint.location.path,
              translated("{}: found iteration {} in its state, expected {} as the folder's name "
                         "says; the folder was renamed, or its files are of another save",
                         checkpoint.location.path, *saved, *folder));
}

// The folder that an iteration's lies in. `is_root`: it was given, not the iteration's.
Status check_tracker(const std::string& root, std::string_view iteration, bool is_root,
                     VerifyReport& report) {
  const auto directory = open_directory(root);
  if (!directory) return {};
  const Folder run = SW_TRY(Folder::open(**directory, ""));
  const auto tracker = SW_TRY(read_tracker(run));
  constexpr std::string_view kTracker = "latest_checkpointed_iteration.txt";
  if (!tracker) {
    if (!is_root || !lacks_tracker(run, iteration)) return {};
    add_finding(report, Code::kTrackerBroken, std::string(kTracker),
                translated("{}/{} is missing: Megatron finds no checkpoint there and starts from "
                           "random weights; if the save of {} was finished, write '{}' into it",
                           root, kTracker, iteration, word_of_iteration(iteration)),
                Severity::kWarning);
    return {};
  }
  if (tracker->folder.empty()) {
    add_finding(report, Code::kTrackerBroken, std::string(kTracker),
                translated("{}/{}: found '{}', expected an iteration or 'release'", root, kTracker,
                           printable(tracker->text)));
  } else if (!tracker->is_there) {
    add_finding(report, Code::kTrackerBroken, std::string(kTracker),
                translated("{}/{}: names {}, which is not there", root, kTracker, tracker->folder));
  } else {
    report.proven.push_back(phrase("proven.tracker", {{"folder", tracker->folder}}));
  }
  return {};
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash == 0 ? "." : path.substr(0, slash);
}

// Of the safetensors file that a tensor lies in: the metadata says where it begins only. One that
// can't be read was reported.
ByteRange shared_range(const Checkpoint& checkpoint, std::uint32_t file, ByteRange tensor) {
  const auto open = checkpoint.files->get(file);
  if (!open || (*open)->size() < tensor.offset) return tensor;
  const ByteRange rest{tensor.offset, (*open)->size() - tensor.offset};
  const auto header = read_safetensors_header(FileWindow(**open, rest));
  if (!header) return rest;
  std::uint64_t end = 0;
  for (const auto& entry : header->tensors) {
    end = std::max(end, entry.range.offset + entry.range.length);
  }
  return {tensor.offset, end};
}

// How far a checkpoint's entries use each of its files; nothing for a file that has none.
using FileEnds = std::vector<std::optional<std::uint64_t>>;

FileEnds ends_of(const Checkpoint& checkpoint) {
  const Catalog& catalog = checkpoint.catalog;
  FileEnds ends(catalog.files.size());
  const auto use = [&](std::uint32_t file, ByteRange range) {
    ends[file] = std::max(ends[file].value_or(0), range.offset + range.length);
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, ByteRange> shared;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
      const std::uint32_t file = tensor.chunks.file(c);
      const ByteRange range = tensor.chunks.range(c);
      if (!is_safetensors_item(tensor, c)) {
        use(file, range);
        continue;
      }
      const auto [found, is_new] = shared.try_emplace({file, range.offset});
      if (is_new) found->second = shared_range(checkpoint, file, range);
      use(file, found->second);
    }
  }
  for (const StoredObject& object : catalog.objects) use(object.file, object.range);
  return ends;
}

void check_ends(const Checkpoint& checkpoint, const FileEnds& ends, VerifyReport& report) {
  const std::vector<std::string>& files = checkpoint.catalog.files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!ends[i] || !files[i].ends_with(".distcp")) continue;
    const auto file = checkpoint.files->get(static_cast<std::uint32_t>(i));
    if (!file || (*file)->size() <= *ends[i]) continue;
    add_finding(report, Code::kUnreferencedBytes, files[i],
                translated("{}: found {} bytes, expected its entries to end at {}; what is behind "
                           "them belongs to nothing",
                           files[i], (*file)->size(), *ends[i]),
                Severity::kWarning);
  }
}

// Files that look as if they were of the checkpoint, and are not.
Status check_leftovers(const Checkpoint& checkpoint, const FileEnds& ends, VerifyReport& report) {
  // Beside a model in torch files lie others of a training run, and the same in safetensors.
  const std::string_view ending = checkpoint.location.traits.leftover_ending;
  if (ending.empty()) return {};
  std::map<std::string_view, bool> is_used;  // of the files that it names
  const std::vector<std::string>& files = checkpoint.catalog.files;
  for (std::size_t i = 0; i < files.size(); ++i) is_used[files[i]] |= ends[i].has_value();
  for (const DirectoryEntry& entry : SW_TRY(checkpoint.directory->list(""))) {
    if (entry.is_directory || !entry.name.ends_with(ending)) continue;
    const auto named = is_used.find(entry.name);
    if (named != is_used.end() && named->second) continue;
    if (entry.problem) {
      add_finding(report, Code::kUnreferencedBytes, entry.name, entry.problem->message,
                  Severity::kWarning);
      continue;
    }
    if (entry.size_bytes == 0 || named != is_used.end()) continue;
    add_finding(report, Code::kUnreferencedBytes, entry.name,
                translated("{}: found a file of {} bytes that nothing names; it may be left over "
                           "from another save",
                           entry.name, entry.size_bytes),
                Severity::kWarning);
  }
  return {};
}

}  // namespace

Status check_run(const Checkpoint& checkpoint, const std::string& path, VerifyReport& report) {
  check_iteration(checkpoint, report);
  const SourceFormat& format = *find_source_format(checkpoint.location.format);
  for (const auto& [file, error] : format.defects_beside(checkpoint)) {
    // That half of something is not there is no matter of taste.
    const bool is_lost = error.code == Code::kUnmatchedSource;
    add_finding(report, error.code, file, error.message,
                is_lost ? Severity::kError : Severity::kWarning);
  }
  const SourceTraits& traits = checkpoint.location.traits;
  if (!traits.has_chunk_list && !traits.is_of_ranks) return {};
  if (lacks_metadata_json(SW_TRY(Folder::open(*checkpoint.directory, "")))) {
    add_finding(report, Code::kNotFound, "metadata.json",
                translated("metadata.json is missing: Megatron-Core takes no folder without it for "
                           "a distributed checkpoint; copy it too, or write {} into it",
                           torch_dist_marker()));
  }
  const std::string& data = checkpoint.location.path;
  const bool is_root = path != data && path != data + "/";
  // Only an iteration's own name says that its parent is a run.
  if (!is_root && !checkpoint.location.iteration) return {};
  const std::string_view iteration = std::string_view(data).substr(data.find_last_of('/') + 1);
  return check_tracker(parent_of(data), iteration, is_root, report);
}

Status check_files(const Checkpoint& checkpoint, VerifyReport& report) {
  const FileEnds ends = ends_of(checkpoint);
  check_ends(checkpoint, ends, report);
  return check_leftovers(checkpoint, ends, report);
}

Status check_index_total(const Checkpoint& checkpoint, VerifyReport& report) {
  if (checkpoint.location.traits.records != Records::kNone) return {};
  const std::optional<std::string_view> name = index_file_in(*checkpoint.directory);
  if (!name) return {};
  const auto index = read_hf_index(*checkpoint.directory, *name);
  if (!index) return {};  // reported when it was opened
  if (is_stale_index(*checkpoint.directory, *name, *index).value_or(false)) return {};
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    bytes += tensor.chunks.range(0).length;
  }
  if (index->total_bytes && *index->total_bytes != bytes) {
    add_finding(report, Code::kIndexMismatch, std::string(*name),
                translated("{}: found total_size {}, expected {} as the headers add up to; 'index "
                           "rebuild' writes it anew",
                           *name, *index->total_bytes, bytes));
    return {};
  }
  if (!has_finding(report, Code::kIndexMismatch)) {
    report.proven.push_back(phrase("proven.index"));
  }
  return {};
}

}  // namespace shardwright
