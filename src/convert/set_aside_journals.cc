// SPDX-License-Identifier: Apache-2.0
#include "convert/set_aside_journals.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>

#include "base/fail.h"
#include "base/text.h"
#include "convert/part_journals.h"
#include "exec/piece_journal.h"
#include "io/folder_listing.h"
#include "io/named_file.h"
#include "io/output_place.h"
#include "io/partial_outputs.h"
#include "io/pending_call.h"
#include "io/retries.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

// In the folder beside: whose journals those are, by the inode of the hidden folder, which keeps it
// under any name, and the name that it had.
constexpr std::string_view kNote = "of";
constexpr std::string_view kNoteHead = "shardwright set-aside 1\n";
constexpr std::uint64_t kMostNoteBytes = 8192;

struct Owner {
  std::uint64_t inode = 0;
  std::string name;
};

bool is_journal(std::string_view name) {
  return name == kJournalName || part_of_journal(name).has_value();
}

// Nobody takes what lies aside for a journal: it begins with no dot.
std::string name_aside(std::string_view journal) { return std::string(journal.substr(1)); }

std::optional<std::uint64_t> inode_of(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  return found.st_ino;
}

// One of an earlier process of this number will do.
Status make_folder(const std::string& folder) {
  const PendingCall pending("a call to make this folder", folder);
  if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return fail_errno(errno, folder);
}

Status write_note(const std::string& folder, const Owner& owner) {
  const std::string text = fmt::format("{}{} {}\n", kNoteHead, owner.inode, owner.name);
  const std::string path = folder + "/" + std::string(kNote);
  const PendingCall pending("a write", path);
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.valid()) return fail_errno(errno, path);
  const Transfer written = transfer(text.size(), [&](std::size_t done) {
    return ::write(file.get(), text.data() + done, text.size() - done);
  });
  if (written.done != text.size()) return fail_errno(written.ended ? EIO : written.os_errno, path);
  if (::fsync(file.get()) != 0) return fail_errno(errno, path);
  return {};
}

Status sync_folder(const std::string& folder) {
  const PendingCall pending("a sync of this folder", folder);
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.valid() && ::fsync(opened.get()) == 0) return {};
  return fail_errno(errno, translated("{}: cannot make this folder durable", folder));
}

std::optional<Owner> read_note(const std::string& folder) {
  const auto text = read_named_file(folder + "/" + std::string(kNote), kMostNoteBytes);
  if (!text || !text->starts_with(kNoteHead) || !text->ends_with('\n')) return std::nullopt;
  std::string_view rest = *text;
  rest.remove_prefix(kNoteHead.size());
  rest.remove_suffix(1);
  const auto inode = take_number(rest);
  if (!inode || !rest.starts_with(' ') || rest.contains('/')) return std::nullopt;
  return Owner{static_cast<std::uint64_t>(*inode), std::string(rest.substr(1))};
}

bool lock_now(UniqueFd& lock, const std::string& folder) {
  lock = UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return lock.valid() && (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
}

void remove_aside(const std::string& folder) {
  const PendingCall pending("a removal of what is in this folder", folder);
  ::unlink((folder + "/" + std::string(kNote)).c_str());
  ::rmdir(folder.c_str());
}

// All journals that lie in `aside`; whether none is left.
bool move_back(const std::string& aside, const std::string& partial) {
  const auto entries = list_folder(aside);
  if (!entries) return false;
  bool all = true;
  for (const FolderEntry& entry : *entries) {
    const std::string journal = "." + entry.name;
    if (!is_journal(journal)) continue;
    const PendingCall pending("a rename", aside);
    all &= ::rename((aside + "/" + entry.name).c_str(), (partial + "/" + journal).c_str()) == 0;
  }
  return all;
}

// The folder of parts that a process which replaces something had named otherwise.
void give_name_back(const std::string& partial, const std::string& name,
                    const std::string& target) {
  const std::string wanted = (fs::path(target).parent_path() / name).string();
  const std::string begin = fmt::format(".{}.parts-", fs::path(target).filename().string());
  if (wanted == partial || !name.starts_with(begin) || inode_of(wanted)) return;
  (void)::rename(partial.c_str(), wanted.c_str());
}

}  // namespace

SetAsideJournals::~SetAsideJournals() {
  if (std::uncaught_exceptions() > 0) put_back();
  drop();
}

Status SetAsideJournals::take() {
  const std::string& partial = publication_.partial_path();
  for (const DirectoryEntry& entry : SW_TRY(publication_.directory().list(""))) {
    if (is_journal(entry.name)) names_.push_back(entry.name);
  }
  if (names_.empty()) return {};
  const auto inode = inode_of(partial);
  if (!inode) return fail_errno(errno, partial);
  inode_ = *inode;
  SW_TRY(make_folder(journals_path(partial)));
  folder_ = journals_path(partial);
  (void)lock_now(lock_, folder_);
  const Owner owner{inode_, fs::path(partial).filename().string()};
  SW_TRY(write_note(folder_, owner));
  SW_TRY(sync_folder(fs::path(folder_).parent_path().string()));
  for (const std::string& name : names_) {
    const std::string journal = partial + "/" + name;
    const PendingCall moving("a rename", journal);
    if (::rename(journal.c_str(), (folder_ + "/" + name_aside(name)).c_str()) == 0) continue;
    if (errno != ENOENT) return fail_errno(errno, journal + translated(": cannot move"));
  }
  return sync_folder(folder_);
}

void SetAsideJournals::put_back() noexcept {
  if (folder_.empty()) return;
  try {
    // Once the output is in its place, what it replaced may have that name.
    const std::string& partial = publication_.partial_path();
    if (inode_of(partial) == inode_ && move_back(folder_, partial)) remove_aside(folder_);
  } catch (const std::bad_alloc&) {
    return;  // what is set aside stays, for whoever goes on
  }
  folder_.clear();
}

void SetAsideJournals::drop() noexcept {
  if (folder_.empty()) return;
  try {
    const PendingCall pending("a removal of what is in this folder", folder_);
    for (const std::string& name : names_) {
      ::unlink((folder_ + "/" + name_aside(name)).c_str());
    }
    remove_aside(folder_);
  } catch (const std::bad_alloc&) {
    return;  // the next run names it
  }
  folder_.clear();
}

void return_set_aside(const std::string& output) {
  const auto target = resolved_output(output);
  if (!target) return;
  const auto outputs = list_partial_outputs(target->parent_path().string());
  if (!outputs) return;
  const std::string name = target->filename().string();
  const auto is_left = [&](const PartialOutput& one) {
    return one.target == name && one.state == PartialState::kAbandoned;
  };
  for (const PartialOutput& aside : *outputs) {
    const auto owner = is_left(aside) ? read_note(aside.path) : std::nullopt;
    if (!owner) continue;
    const auto found = std::ranges::find_if(*outputs, [&](const PartialOutput& one) {
      return is_left(one) && one.path != aside.path && inode_of(one.path) == owner->inode;
    });
    UniqueFd lock;
    if (found == outputs->end() || !lock_now(lock, aside.path)) continue;
    if (move_back(aside.path, found->path)) remove_aside(aside.path);
    give_name_back(found->path, owner->name, target->string());
  }
}

}  // namespace shardwright
