// SPDX-License-Identifier: Apache-2.0
#include "io/placed_entries.h"

#include <cerrno>
#include <filesystem>
#include <new>
#include <ranges>

#include "base/fail.h"
#include "io/folder_listing.h"
#include "io/partial_outputs.h"
#include "io/publish.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

bool cannot_exchange(int os_errno) {
  return os_errno == EINVAL || os_errno == ENOSYS || os_errno == EOPNOTSUPP;
}

}  // namespace

int PlacedEntries::move(const std::string& made, const std::string& target) {
  entries_.reserve(entries_.size() + 1);
  Entry entry{made, target, {}};
  const int failed = calls_.rename(made, target);
  if (failed == 0) entries_.push_back(std::move(entry));
  return failed;
}

Status PlacedEntries::swap(const std::string& made, const std::string& target) {
  entries_.reserve(entries_.size() + 1);
  Entry entry{made, target, {}};
  SW_TRY(swap_in(made, target, entry.replaced));
  entries_.push_back(std::move(entry));
  return {};
}

// Puts one in the place of another, which is `replaced` afterwards.
Status PlacedEntries::swap_in(const std::string& made, const std::string& target,
                              std::string& replaced) {
  const std::string old = aside_path(made);
  replaced.reserve(old.size());  // what fails later would leave them swapped
  const int exchanged = calls_.exchange(made, target);
  if (exchanged == 0) {
    replaced = made;
    return {};
  }
  if (!cannot_exchange(exchanged)) {
    return fail_errno(exchanged, translated("{}: cannot swap in the new folder", target));
  }
  if (const int failed = calls_.rename(target, old); failed != 0) {
    return fail_errno(failed, translated("{}: cannot move it aside", target));
  }
  if (const int failed = calls_.rename(made, target); failed != 0) {
    if (calls_.rename(old, target) != 0) {
      return fail_errno(failed, translated("{}: cannot move the new folder here; the old one is "
                                           "now {}, move it back",
                                           target, old));
    }
    return fail_errno(failed, translated("{}: cannot move the new folder here", target));
  }
  replaced = old;
  return {};
}

// A file that is in the way is swapped too, where the file system can: a rename would lose it.
Status PlacedEntries::insert_one(const std::string& made, const std::string& target,
                                 bool is_folder) {
  Entry entry{made, target, {}};
  std::error_code ignored;
  const bool is_there =
      !is_folder && fs::symlink_status(target, ignored).type() != fs::file_type::not_found;
  const int exchanged = is_there ? calls_.exchange(made, target) : ENOSYS;
  if (exchanged == 0) {
    entry.replaced.swap(entry.made);
  } else if (!cannot_exchange(exchanged)) {
    return fail_errno(exchanged, translated("{}: cannot move it here", target));
  } else {
    entry.is_old_gone = is_there;
    const int renamed = calls_.rename(made, target);
    if (renamed != 0 && (!is_folder || (renamed != ENOTEMPTY && renamed != EEXIST))) {
      return fail_errno(renamed, translated("{}: cannot move it here", target));
    }
    if (renamed != 0) SW_TRY(swap_in(made, target, entry.replaced));
  }
  entries_.push_back(std::move(entry));
  return {};
}

Status PlacedEntries::insert(const std::string& made, const std::string& target) {
  const std::vector<FolderEntry> found = SW_TRY(list_folder(made));
  entries_.reserve(entries_.size() + found.size());
  Status status;
  try {
    for (const bool is_folder : {true, false}) {
      for (const FolderEntry& entry : found) {
        const bool is_next = (entry.kind == EntryKind::kFolder) == is_folder;
        if (!status || !is_next) continue;
        status = insert_one(fs::path(made) / entry.name, fs::path(target) / entry.name, is_folder);
      }
    }
  } catch (const std::bad_alloc&) {
    status = fail_out_of_memory();
  }
  return status ? status : take_back(std::move(status));
}

bool PlacedEntries::move_back(Entry& entry) {
  if (entry.is_old_gone) return false;
  if (entry.replaced.empty()) return calls_.rename(entry.target, entry.made) == 0;
  return swap_in(entry.replaced, entry.target, entry.made).has_value();
}

Status PlacedEntries::take_back(Status why) {
  for (Entry& entry : std::views::reverse(entries_)) {
    if (move_back(entry)) continue;
    return fail(why.error().code, "{}; {} is the new one", why.error().message, entry.target);
  }
  are_back_ = true;
  return why;
}

}  // namespace shardwright
