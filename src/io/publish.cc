// SPDX-License-Identifier: Apache-2.0
#include "io/publish.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <ranges>
#include <utility>

#include "base/fail.h"
#include "io/folder_listing.h"
#include "io/in_place.h"
#include "io/named_directory.h"
#include "io/output_place.h"
#include "io/partial_outputs.h"
#include "io/pending_call.h"
#include "io/placed_entries.h"
#include "io/remote_path.h"
#include "io/remove_tree.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

Status check_parent(const fs::path& parent) {
  std::error_code error;
  if (!fs::is_directory(parent, error)) {
    return fail(Code::kNotFound,
                "{} is not a folder, so nothing can be made in it; choose another target",
                parent.string());
  }
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return fail_errno(errno, translated("{}: cannot make a folder here", parent.string()));
  }
  return {};
}

Status check_space(const fs::path& parent, std::uint64_t bytes_needed) {
  if (bytes_needed == 0) return {};
  struct statvfs space{};
  if (::statvfs(parent.c_str(), &space) != 0) {
    return fail_errno(errno, translated("{}: cannot ask for free space", parent.string()));
  }
  const std::uint64_t block = space.f_frsize;
  if (block == 0 || bytes_needed / block < space.f_bavail) return {};
  return fail(Code::kDiskSpace,
              "{}: found {} bytes free, expected at least {}; free some space or choose another "
              "target",
              parent.string(), block * space.f_bavail, bytes_needed);
}

}  // namespace

int PublishCalls::sync_folder(const std::string& path) {
  const PendingCall pending("a sync of this folder", path);
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.valid() && ::fsync(folder.get()) == 0 ? 0 : errno;
}

int PublishCalls::rename(const std::string& from, const std::string& to) {
  const PendingCall pending("a rename", from);
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int PublishCalls::exchange(const std::string& a, const std::string& b) {
  const PendingCall pending("a rename", a);
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
}

int PublishCalls::remove_tree(const std::string& path) {
  PendingCall pending("a removal of what is in this folder", path);
  return shardwright::remove_tree(path.c_str(), &pending);
}

Publication::Publication(PublishOptions options, std::shared_ptr<PublishCalls> calls,
                         std::string target, std::string partial)
    : options_(std::move(options)),
      calls_(std::move(calls)),
      target_(std::move(target)),
      partial_(std::move(partial)) {}

Publication::~Publication() {
  forget();
  clean_up();
}

void Publication::clean_up() noexcept {
  try {
    directory_.reset();
    if (committed_ || (options_.keeps_unfinished && !partial_.empty())) return;
    if (!partial_.empty() && is_ours(partial_)) remove_or_report(partial_);
    for (; !made_parents_.empty(); made_parents_.pop_back()) ::rmdir(made_parents_.back().c_str());
  } catch (const std::bad_alloc&) {
    // Without memory nothing more can be done, nor told; the next run names what was left.
    return;
  }
}

void Publication::abandon() noexcept {
  if (committed_ || partial_.empty()) return;
  const bool is_removed = !options_.keeps_unfinished && is_ours(partial_) &&
                          shardwright::remove_tree(partial_.c_str(), nullptr) == 0;
  if (is_removed) {
    for (const std::string& made : std::views::reverse(made_parents_)) ::rmdir(made.c_str());
    return;
  }
  struct stat details{};
  if (::lstat(partial_.c_str(), &details) != 0) return;
  constexpr std::string_view kText = "error[SW0113]: out of memory; remove ";
  for (const std::string_view text : {kText, std::string_view(partial_), std::string_view("\n")}) {
    static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
  }
}

/// Whether the folder of that path is the one that was made, as far as it is known.
bool Publication::is_ours(const std::string& path) const noexcept {
  struct stat made{};
  struct stat there{};
  if (!lock_.valid() || ::fstat(lock_.get(), &made) != 0) return true;
  return ::lstat(path.c_str(), &there) == 0 && there.st_dev == made.st_dev &&
         there.st_ino == made.st_ino;
}

void Publication::remove_or_report(const std::string& path) {
  if (calls_->remove_tree(path) != 0 && options_.report_leftover) options_.report_leftover(path);
}

Result<std::unique_ptr<Publication>> Publication::begin(PublishOptions options,
                                                        std::shared_ptr<PublishCalls> calls) {
  if (options.target.empty()) return fail(Code::kUsage, "the target's path is empty; give one");
  SW_TRY(check_local_output(options.target));
  const fs::path target = SW_TRY(resolved_output(options.target));
  if (!target.has_filename()) {
    return fail(Code::kTargetExists, "{}: found the root folder, expected a new one",
                target.string());
  }
  for (const std::string& source : options.sources) SW_TRY(check_apart(target, source, false));
  for (const std::string& kept : options.kept) SW_TRY(check_apart(target, kept, true));
  std::unique_ptr<Publication> publication(
      new Publication(std::move(options), std::move(calls), target.string(), std::string()));
  SW_TRY(publication->check_target());
  const fs::path parent = existing_ancestor(target);
  SW_TRY(check_parent(parent));
  const std::string& id = publication->options_.parts_id;
  const std::string parts = id.empty() ? std::string() : parts_folder(target.string(), id);
  std::error_code ignored;
  // What parts have begun has its place.
  if (parts.empty() || !fs::exists(parts, ignored)) {
    SW_TRY(check_space(parent, publication->options_.bytes_needed));
  }
  SW_TRY(publication->make_parents());
  const BeginningTurn turn(target.parent_path().string());
  if (const auto rival = SW_TRY(rival_of(target.string(), turn, parts))) {
    const std::string who = rival->process == 0 ? "a part of another saved plan"
                                                : fmt::format("process {}", rival->process);
    return fail(Code::kTargetExists,
                "{}: {} is writing it now, in {}; wait for it or choose another target",
                target.string(), who, rival->path);
  }
  SW_TRY(publication->make_hidden_folder(parts));
  SW_TRY(publication->open_partial());
  return publication;
}

Status Publication::make_hidden_folder(const std::string& parts) {
  if (!parts.empty()) return join(parts);
  partial_ = SW_TRY(make_partial(target_));
  is_new_ = true;
  return options_.unfinished.empty() ? Status{} : take_over(std::string(options_.unfinished));
}

/// All parts use one folder, whoever of them comes first makes it.
Status Publication::join(const std::string& parts) {
  std::error_code ignored;
  is_new_ = options_.is_part && ::mkdir(parts.c_str(), 0777) == 0;
  if (options_.is_part && !is_new_ && errno != EEXIST) {
    return fail_errno(errno, translated("{}: cannot make a folder beside it", target_));
  }
  if (!options_.is_part && !fs::exists(parts, ignored)) {
    return fail(Code::kPartsMissing, "{}: no part of it is written; run the parts first", target_);
  }
  partial_ = parts;
  return {};
}

std::unexpected<Error> Publication::others_came() const {
  return fail(Code::kTargetExists, "{}: other entries are in it than before the work; try again",
              target_);
}

/// Neither a folder with something in it (unless it may be replaced) nor anything else.
Status Publication::check_target() {
  std::error_code error;
  if (fs::symlink_status(target_, error).type() == fs::file_type::not_found) return {};
  SW_TRY(check_is_folder(target_));
  const bool is_empty = SW_TRY(list_folder(target_)).empty();
  if (is_empty && !is_mount_point(target_)) return {};
  if (!is_empty && !options_.may_replace) {
    if (!options_.parts_id.empty()) {  // what is replaced, the plan says
      return fail(Code::kTargetExists,
                  "{}: found a folder that is not empty, expected none; move it away, or save the "
                  "plan anew, to replace it (plan --save --overwrite)",
                  target_);
    }
    return fail(Code::kTargetExists,
                "{}: found a folder that is not empty, expected none; choose another target or "
                "replace it (--overwrite)",
                target_);
  }
  SW_TRY(check_may_be_replaced(target_));
  const Replace how = SW_TRY(options_.may_replace(target_));
  if (replace_ && *replace_ != how) return others_came();
  replace_ = how;
  return {};
}

Status Publication::make_parents() {
  const fs::path ancestor = existing_ancestor(target_);
  fs::path parent = fs::path(target_).parent_path();
  std::vector<std::string> missing;
  for (; parent != ancestor && parent.has_relative_path(); parent = parent.parent_path()) {
    missing.push_back(parent.string());
  }
  for (const std::string& folder : std::views::reverse(missing)) {
    if (::mkdir(folder.c_str(), 0777) == 0) {
      made_parents_.push_back(folder);
    } else if (errno != EEXIST) {
      return fail_errno(errno, translated("{}: cannot make this folder", folder));
    }
  }
  return {};
}

/// Moves it to the place of the empty folder that was made: of several who want it one gets it.
Status Publication::take_over(const std::string& unfinished) {
  const int failed = calls_->rename(unfinished, partial_);
  if (failed == 0) return {};
  (void)::rmdir(partial_.c_str());
  partial_.clear();
  return fail_errno(failed, translated("{}: cannot take over this unfinished output", unfinished));
}

Status Publication::open_partial() {
  lock_ = UniqueFd(::open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const bool is_part = options_.is_part;
  const bool is_locked =
      lock_patiently(lock_, is_part ? FolderLock::kWithOthers : FolderLock::kAlone);
  if (!is_locked && !options_.parts_id.empty()) {
    return fail(Code::kTargetExists, "{}: {}", target_,
                is_part ? "it is being published now, or removed; nothing is left to be written"
                        : "a part of it is being written now; publish it when that is done");
  }
  directory_ = SW_TRY(open_local_directory_as(partial_, target_));
  return {};
}

// A folder in the hidden one by the name that it will have.
std::string Publication::shown(const std::string& folder) const {
  return folder.starts_with(partial_) ? target_ + folder.substr(partial_.size()) : folder;
}

Status Publication::sync_folders() const {
  SW_TRY(sync_tree());
  const std::string parent = fs::path(partial_).parent_path().string();
  const int failed = calls_->sync_folder(parent);
  if (failed == 0) return {};
  return fail_errno(failed, translated("{}: cannot make this folder durable", parent));
}

Status Publication::sync_tree() const {
  for (const std::string& folder : SW_TRY(read_tree(partial_)).folders) {
    if (const int failed = calls_->sync_folder(folder); failed != 0) {
      return fail_errno(failed, translated("{}: cannot make this folder durable", shown(folder)));
    }
  }
  return {};
}

Status Publication::move_into_place(PlacedEntries& placed) {
  if (replace_ != Replace::kEntries) {
    const int failed = placed.move(partial_, target_);
    if (failed == 0) return {};
    if (failed != ENOTEMPTY && failed != EEXIST) {
      return fail_errno(failed, translated("{}: cannot move the new folder here", target_));
    }
  }
  const bool was_free = !replace_;
  SW_TRY(check_target());
  if (was_free && options_.may_stay) return others_came();
  SW_TRY(leave_parts_name());
  return replace_ == Replace::kEntries ? placed.insert(partial_, target_)
                                       : placed.swap(partial_, target_);
}

// What is replaced will lie where the new folder did. By the name that parts work in, parts that
// are run again after a kill would write into it, and publish it.
Status Publication::leave_parts_name() {
  if (options_.parts_id.empty()) return {};
  std::string own = SW_TRY(make_partial(target_));
  if (const int failed = calls_->rename(partial_, own); failed != 0) {
    (void)::rmdir(own.c_str());
    return fail_errno(failed, translated("{}: cannot take over this unfinished output", partial_));
  }
  parts_ = std::exchange(partial_, std::move(own));
  return {};
}

void Publication::go_back_to_parts_name() noexcept {
  if (parts_.empty() || partial_.empty() || calls_->rename(partial_, parts_) != 0) return;
  partial_.swap(parts_);
  parts_.clear();
}

Status Publication::commit(const LastStep& last) {
  if (committed_) return fail(Code::kInternal, "{}: found a second commit", target_);
  Status status = commit_once(last);
  if (status || committed_ || partial_.empty() || !is_ours(partial_)) return status;
  if (last.undo) last.undo();
  go_back_to_parts_name();
  return status;
}

Status Publication::commit_once(const LastStep& last) {
  SW_TRY(sync_tree());
  if (options_.may_appear) SW_TRY(options_.may_appear());
  if (last.act) {
    SW_TRY(last.act());
    if (const int failed = calls_->sync_folder(partial_); failed != 0) {
      return fail_errno(failed, translated("{}: cannot make this folder durable", target_));
    }
  }
  // Once the output is in place nothing needs memory: there would be no way back.
  const std::string above = fs::path(target_).parent_path().string();
  std::vector<std::string> above_made;
  for (const std::string& made : made_parents_) {
    above_made.push_back(fs::path(made).parent_path().string());
  }
  const auto stays = [&] { return options_.may_stay ? options_.may_stay() : Status{}; };
  PlacedEntries placed(*calls_);
  if (Status moved = move_into_place(placed); !moved) {
    // Who takes this process for lost has taken the hidden folder away.
    SW_TRY(stays());
    return moved;
  }
  committed_ = true;
  note_output_in_place();
  const std::string& parent = replace_ == Replace::kEntries ? target_ : above;
  // At once too: who was told to end by a signal may have a millisecond left.
  Status status = stays();
  int failed = 0;
  if (status) {
    failed = calls_->sync_folder(parent);
    for (const std::string& folder : above_made) {
      if (failed == 0) failed = calls_->sync_folder(folder);
    }
    status = stays();
  }
  if (!status) {
    status = take_back(placed, above, std::move(status));
    (void)calls_->sync_folder(parent);
    return status;
  }
  if (failed == 0 && last.done) last.done();
  // The old folder is removed only when the new one is sure to stay.
  const std::string& old = replace_ == Replace::kEntries ? partial_ : placed.replaced();
  if (failed == 0 && !old.empty()) remove_or_report(old);
  if (failed != 0 && !old.empty() && options_.report_leftover) options_.report_leftover(old);
  if (failed == 0) return {};
  return fail_errno(failed, translated("{}: the new folder {} is in place but may not outlive a "
                                       "power failure",
                                       parent, target_));
}

// The hidden folder is again what was made: it is not the old one, and goes as after any failure.
// Who takes this process for lost withdraws the output in such a turn, too: one after the other.
Status Publication::take_back(PlacedEntries& placed, const std::string& above, Status why) {
  const BeginningTurn turn(above);
  if (replace_ != Replace::kEntries && !is_ours(target_)) {
    partial_.clear();
    committed_ = false;
    forget_outputs();
    return why;
  }
  why = placed.take_back(std::move(why));
  if (!placed.are_back()) return why;
  if (replace_ != Replace::kEntries) partial_ = placed.release_made();
  committed_ = false;
  forget_outputs();
  return why;
}

std::vector<std::string> stale_partials(std::string_view target) {
  std::vector<std::string> stale;
  const auto resolved = resolved_output(std::string(target));
  if (!resolved) return stale;
  const auto outputs = list_partial_outputs(resolved->parent_path().string());
  if (!outputs) return stale;
  for (const PartialOutput& output : *outputs) {
    const bool is_of_target = output.path.starts_with(partial_prefix(resolved->string()));
    if (is_of_target && output.state == PartialState::kAbandoned) stale.push_back(output.path);
  }
  return stale;
}

}  // namespace shardwright
