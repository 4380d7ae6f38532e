// SPDX-License-Identifier: Apache-2.0
#include "convert/replaced_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "dcp/rank_metadata.h"
#include "format/indexed_files.h"
#include "format/iteration_folder.h"
#include "format/model_files.h"
#include "format/weight_names.h"
#include "io/folder_listing.h"
#include "io/output_place.h"
#include "io/publish.h"
#include "layout/rank_folder.h"
#include "model/model_part.h"
#include "shardwright/storage.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

using Entries = std::vector<DirectoryEntry>;
using Names = std::set<std::string, std::less<>>;

bool has_index_file(const Entries& entries) {
  return std::ranges::any_of(entries, is_index_file, &DirectoryEntry::name);
}

bool is_run_root(const Entries& entries) {
  return std::ranges::any_of(entries, [](const DirectoryEntry& entry) {
    return entry.name == kTrackerName || (entry.is_directory && is_iteration_folder(entry.name));
  });
}

bool is_iteration_data(const Entries& entries) {
  return std::ranges::any_of(entries, [](const DirectoryEntry& entry) {
    return entry.is_directory ? parse_rank_folder(entry.name).has_value()
                              : entry.name == kDcpMetadata || metadata_rank(entry.name);
  });
}

bool is_weights(const DirectoryEntry& entry) {
  return !entry.is_directory && entry.name.ends_with(".safetensors") &&
         !entry.name.starts_with("adapter_");
}

bool is_model(const Entries& entries) {
  return has_index_file(entries) || std::ranges::any_of(entries, is_weights);
}

std::string joined(std::string_view folder, std::string_view name) {
  return folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
}

std::string shown(std::string_view folder, const DirectoryEntry& entry) {
  return joined(folder, entry.name) + (entry.is_directory ? "/" : "");
}

/// Looks for what belongs to no checkpoint, or to another one than is replaced.
class StrangerSearch {
 public:
  StrangerSearch(const Directory& directory, std::span<const std::string> written)
      : directory_(directory), written_(written.begin(), written.end()) {}

  // Of the folder of a whole checkpoint.
  Status look_into(const std::string& folder) {
    const Entries entries = SW_TRY(directory_.list(folder));
    if (is_run_root(entries)) return look_into_run(folder, entries);
    if (is_iteration_data(entries)) return look_into_iteration(folder, entries);
    if (is_model(entries)) return look_into_model(folder, entries);
    const DirectoryEntry* whole = find(entries, kWholeModelFolder);
    if (whole != nullptr &&
        directory_.exists(joined(folder, kWholeModelFolder) + "/" + std::string(kSourceKeysFile))) {
      return look_into_parts(folder, entries);
    }
    is_checkpoint_ = false;
    for (const DirectoryEntry& entry : entries) SW_TRY(add(folder, entry));
    return {};
  }

  // Folders that were written file by file: what is not known is a stranger.
  Status look_into_side_folder(const std::string& folder) {
    for (const DirectoryEntry& entry : SW_TRY(directory_.list(folder))) {
      const bool is_known = !entry.is_directory && is_usual_in_model(entry.name);
      if (!is_known) SW_TRY(add(folder, entry));
    }
    return {};
  }

  [[nodiscard]] const std::vector<std::string>& strangers() const { return strangers_; }
  [[nodiscard]] bool is_checkpoint() const { return is_checkpoint_; }

 private:
  static const DirectoryEntry* find(const Entries& entries, std::string_view name) {
    const auto found = std::ranges::find(entries, name, &DirectoryEntry::name);
    return found == entries.end() || !found->is_directory ? nullptr : &*found;
  }

  // Of a folder that is written into (a model's `1_Pooling`) only what is not written again.
  Status add(const std::string& folder, const DirectoryEntry& entry) {
    const std::string path = joined(folder, entry.name);
    if (written_.contains(path)) return {};
    const auto inside = written_.lower_bound(path + "/");
    const bool is_written_into = inside != written_.end() && inside->starts_with(path + "/");
    if (!entry.is_directory || entry.problem || !is_written_into) {
      strangers_.push_back(shown(folder, entry));
      return {};
    }
    for (const DirectoryEntry& inner : SW_TRY(directory_.list(path))) SW_TRY(add(path, inner));
    return {};
  }

  // A run of one iteration is one checkpoint; of several ones each is.
  Status look_into_run(const std::string& folder, const Entries& entries) {
    const auto iterations = std::ranges::count_if(entries, [](const DirectoryEntry& entry) {
      return entry.is_directory && is_iteration_folder(entry.name);
    });
    for (const DirectoryEntry& entry : entries) {
      if (entry.is_directory && !entry.problem && is_iteration_folder(entry.name) &&
          iterations == 1) {
        SW_TRY(look_into(joined(folder, entry.name)));
      } else if (entry.is_directory || entry.name != kTrackerName) {
        SW_TRY(add(folder, entry));
      }
    }
    return {};
  }

  Status look_into_iteration(const std::string& folder, const Entries& entries) {
    for (const DirectoryEntry& entry : entries) {
      const std::string path = joined(folder, entry.name);
      const bool is_side = entry.name == "hf" || entry.name == "tokenizer";
      if (entry.problem || !entry.is_directory) {
        if (entry.is_directory || !is_usual_in_iteration(entry.name)) SW_TRY(add(folder, entry));
      } else if (parse_rank_folder(entry.name)) {
        SW_TRY(look_into_rank(path));
      } else if (is_side) {
        SW_TRY(look_into_side_folder(path));
      } else {
        SW_TRY(add(folder, entry));
      }
    }
    return {};
  }

  Status look_into_rank(const std::string& folder) {
    for (const DirectoryEntry& entry : SW_TRY(directory_.list(folder))) {
      const bool is_known = is_usual_in_rank(entry.name);
      if (entry.is_directory || !is_known) SW_TRY(add(folder, entry));
    }
    return {};
  }

  Status look_into_model(const std::string& folder, const Entries& entries) {
    const bool has_index = has_index_file(entries);
    const Names named = folder.empty() ? indexed_files(directory_) : Names{};
    for (const DirectoryEntry& entry : entries) {
      const bool is_weight = is_weights(entry) && (!has_index || named.contains(entry.name));
      const bool is_known = !entry.is_directory && (is_weight || is_usual_in_model(entry.name));
      if (!is_known) SW_TRY(add(folder, entry));
    }
    return {};
  }

  // What `split` writes: a model for each part, and what makes them one again.
  Status look_into_parts(const std::string& folder, const Entries& entries) {
    for (const DirectoryEntry& entry : entries) {
      const std::string path = joined(folder, entry.name);
      if (!entry.is_directory || entry.problem) {
        SW_TRY(add(folder, entry));
      } else if (entry.name == kWholeModelFolder) {
        SW_TRY(look_into_side_folder(path));
      } else {
        SW_TRY(look_into(path));
      }
    }
    return {};
  }

  const Directory& directory_;
  Names written_;
  std::vector<std::string> strangers_;
  bool is_checkpoint_ = true;
};

Status refuse(const std::string& folder, const StrangerSearch& search) {
  if (search.strangers().empty()) return {};
  const std::string names = printable(name_list(search.strangers()));
  if (!search.is_checkpoint()) {
    return fail(
        Code::kTargetExists,
        "{}: this is not a checkpoint, and --overwrite would remove {}; choose another target, or "
        "remove it yourself",
        folder, names);
  }
  return fail(Code::kTargetExists,
              "{}: --overwrite would also remove {}, not known to be of the checkpoint that is "
              "replaced; move this away, or choose another target",
              folder, names);
}

// The iteration's folder that the files lie in, where they make a run's root.
std::string written_iteration(std::span<const std::string> written) {
  for (const std::string& path : written) {
    const std::size_t slash = path.find('/');
    if (slash != std::string::npos && is_iteration_folder(path.substr(0, slash))) {
      return path.substr(0, slash);
    }
  }
  return {};
}

}  // namespace

Result<ReplacedOutput> find_replaced_files(const std::string& folder,
                                           std::span<const std::string> written) {
  const std::unique_ptr<Directory> directory = SW_TRY(open_local_directory(folder));
  const Entries entries = SW_TRY(directory->list(""));
  const std::string iteration = written_iteration(written);
  StrangerSearch search(*directory, written);
  ReplacedOutput replaced;
  if (entries.empty()) return replaced;
  if (iteration.empty() || !is_run_root(entries)) {
    SW_TRY(search.look_into(""));
    SW_TRY(refuse(folder, search));
    for (const DirectoryEntry& entry : entries) replaced.entries.push_back(shown("", entry));
    return replaced;
  }
  for (const DirectoryEntry& entry : entries) {
    const bool is_tracker = entry.name == kTrackerName && !entry.is_directory;
    if (entry.name != iteration && !is_tracker) {
      replaced.keeps_others = true;
      continue;
    }
    replaced.entries.push_back(shown("", entry));
    if (is_tracker) continue;
    if (!entry.is_directory || entry.problem) {
      return fail(Code::kTargetExists,
                  "{}/{}: this is not an iteration's folder, and --overwrite would remove it; move "
                  "it away, or choose another target",
                  folder, entry.name);
    }
    SW_TRY(search.look_into(entry.name));
  }
  SW_TRY(refuse(folder, search));
  return replaced;
}

Result<ReplacedOutput> replaced_output(const PreparedConversion& conversion) {
  const ConvertRequest& request = conversion.request;
  std::error_code error;
  const bool is_there = std::filesystem::is_directory(request.output, error);
  if (!request.overwrite || !is_there || SW_TRY(list_folder(request.output)).empty()) {
    return ReplacedOutput{};
  }
  SW_TRY(check_may_be_replaced(request.output));
  return find_replaced_files(request.output, conversion.plan.target.files);
}

}  // namespace shardwright
