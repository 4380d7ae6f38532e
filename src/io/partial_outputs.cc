// SPDX-License-Identifier: Apache-2.0
#include "io/partial_outputs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/fail.h"
#include "io/folder_listing.h"
#include "io/pending_call.h"
#include "io/remove_tree.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kParts = ".parts-";
constexpr std::size_t kIdDigits = 16;
constexpr std::string_view kOld = "-old";
constexpr std::string_view kJournals = "-journals";
// A run makes few publications; more taken numbers than this mean that something is wrong.
constexpr int kMaxPartials = 10'000;
constexpr int kTurnTries = 200;
constexpr long kTurnPause = 10'000'000;  // nanoseconds

struct PartialName {
  std::string target;
  pid_t process = 0;
  bool is_old = false;
  bool is_hidden = false;
};

// `[.]NAME.partial-<pid>-<n>[-old]`, to the letter: a user's own file must not look like it.
std::optional<PartialName> parse_partial_name(std::string_view name) {
  const std::size_t at = name.rfind(kPartial);
  if (at == std::string_view::npos) return std::nullopt;
  PartialName found;
  std::string_view number = name.substr(at + kPartial.size());
  found.target = name.substr(0, at);
  found.is_hidden = found.target.starts_with('.');
  if (found.is_hidden) found.target.erase(0, 1);
  found.is_old = number.ends_with(kOld);
  if (found.is_old) number.remove_suffix(kOld.size());
  const char* end = number.data() + number.size();
  const auto pid = std::from_chars(number.data(), end, found.process);
  int count = 0;
  if (pid.ec != std::errc() || pid.ptr == end || *pid.ptr != '-') return std::nullopt;
  const auto rest = std::from_chars(pid.ptr + 1, end, count);
  const bool is_whole = rest.ec == std::errc() && rest.ptr == end && count >= 0;
  if (!is_whole || found.process <= 0 || found.target.empty()) return std::nullopt;
  return found;
}

// `.NAME.parts-<id>[-old]`: of no process in particular.
std::optional<PartialName> parse_parts_name(std::string_view name) {
  const std::size_t at = name.rfind(kParts);
  if (at == std::string_view::npos || at < 2 || !name.starts_with('.')) return std::nullopt;
  PartialName found;
  std::string_view id = name.substr(at + kParts.size());
  found.is_old = id.ends_with(kOld);
  if (found.is_old) id.remove_suffix(kOld.size());
  const bool is_id =
      id.size() == kIdDigits && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_id) return std::nullopt;
  found.target = name.substr(1, at - 1);
  found.is_hidden = true;
  return found;
}

// Journals that wait beside such a folder are of its target and of its process.
std::optional<PartialName> parse_name(std::string_view name) {
  if (name.starts_with('.') && name.ends_with(kJournals)) name.remove_suffix(kJournals.size());
  auto found = parse_partial_name(name);
  return found ? found : parse_parts_name(name);
}

bool is_partial(std::string_view name) { return parse_name(name).has_value(); }

bool process_lives(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

UniqueFd open_for_lock(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

bool is_locked(const UniqueFd& file, FolderLock lock = FolderLock::kAlone) {
  const int kind = lock == FolderLock::kAlone ? LOCK_EX : LOCK_SH;
  return ::flock(file.get(), kind | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// 0 for what another user keeps closed, or what is gone.
Result<std::uint64_t> bytes_of(const FolderEntry& entry, const std::string& path) {
  if (entry.kind != EntryKind::kFolder) return entry.bytes;
  const auto tree = read_tree(path);
  if (tree) return tree->bytes;
  const Code why = tree.error().code;
  if (why == Code::kPermission || why == Code::kNotFound) return 0;
  return std::unexpected(tree.error());
}

// A live run holds the lock. Its number tells little: in a container every program is process 1,
// and it may be of another machine that shares this file system; it must do where there are no
// locks. 0, for parts, is nobody's: such a file system keeps them.
bool may_be_written(const std::string& path, pid_t process) {
  const UniqueFd file = open_for_lock(path);
  if (!file.valid()) return true;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK || process == 0 || process_lives(process);
}

PartialState state_of(const std::string& path, const PartialName& name) {
  if (may_be_written(path, name.process)) return PartialState::kHeld;
  if (!name.is_old) return PartialState::kAbandoned;
  std::error_code error;
  const fs::path target = fs::path(path).parent_path() / name.target;
  const bool is_there = fs::symlink_status(target, error).type() != fs::file_type::not_found;
  return is_there ? PartialState::kAbandoned : PartialState::kOnlyCopy;
}

}  // namespace

std::string partial_prefix(const std::string& target) {
  const fs::path path(target);
  return path.parent_path() / fmt::format(".{}{}", path.filename().string(), kPartial);
}

std::string partial_path(const std::string& target, int number) {
  return fmt::format("{}{}-{}", partial_prefix(target), ::getpid(), number);
}

std::string aside_path(const std::string& partial) { return fmt::format("{}{}", partial, kOld); }

std::string journals_path(const std::string& partial) {
  return fmt::format("{}{}", partial, kJournals);
}

Result<std::string> make_partial(const std::string& target) {
  for (int number = 0; number < kMaxPartials; ++number) {
    const std::string folder = partial_path(target, number);
    const PendingCall pending("a call to make this folder", folder);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) {
      return fail_errno(errno, translated("{}: cannot make a folder beside it", target));
    }
  }
  return fail(Code::kTargetExists, "{}: {} unfinished outputs ({}*) lie beside it; remove them",
              target, kMaxPartials, partial_prefix(target));
}

Result<std::vector<PartialOutput>> list_partial_outputs(const std::string& folder) {
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  if (error) return fail_errno(error.value(), folder);
  std::vector<PartialOutput> found;
  for (const FolderEntry& entry : SW_TRY(list_folder(place.string(), is_partial))) {
    const auto name = parse_name(entry.name);
    if (!name) continue;
    // Folders are hidden, files are not; anything else was made by somebody else.
    if (entry.kind != (name->is_hidden ? EntryKind::kFolder : EntryKind::kFile)) continue;
    const std::string path = (place / entry.name).string();
    const std::uint64_t bytes = SW_TRY(bytes_of(entry, path));
    found.push_back({path, name->target, state_of(path, *name), name->process, bytes});
  }
  return found;
}

Result<PartialState> remove_partial_output(const PartialOutput& output) {
  // A run that has made its folder and has not locked it yet is in its turn, and may be stopped in
  // it.
  const fs::path path(output.path);
  const BeginningTurn turn(path.parent_path().string());
  if (!turn.is_ours()) return PartialState::kHeld;
  const auto name = parse_name(path.filename().string());
  if (!name) return PartialState::kHeld;
  std::error_code error;
  const bool is_gone = fs::symlink_status(path, error).type() == fs::file_type::not_found;
  const PartialState state = is_gone ? PartialState::kAbandoned : state_of(output.path, *name);
  if (state != PartialState::kAbandoned) return state;
  if (const int failed = remove_tree(output.path.c_str()); failed != 0) {
    return fail_errno(failed, translated("{}: cannot remove", output.path));
  }
  return PartialState::kAbandoned;
}

// Whoever looks whether a folder is held has the lock for a moment; somebody may hold one for
// reasons of his own: not for ever, then.
bool lock_patiently(const UniqueFd& folder, FolderLock lock) {
  for (int i = 0; i < kTurnTries; ++i) {
    if (!is_locked(folder, lock)) return true;
    const timespec pause{0, kTurnPause};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

BeginningTurn::BeginningTurn(const std::string& folder)
    : folder_(open_for_lock(folder)), is_ours_(lock_patiently(folder_)) {}

Result<std::optional<PartialOutput>> rival_of(const std::string& target, const BeginningTurn& turn,
                                              const std::string& own) {
  const fs::path wanted(target);
  const auto entries = list_folder(wanted.parent_path().string(), is_partial);
  // One may write into a folder that one may not list.
  if (!entries && entries.error().code == Code::kPermission) return std::nullopt;
  if (!entries) return std::unexpected(entries.error());
  for (const FolderEntry& entry : *entries) {
    const auto name = parse_name(entry.name);
    if (!name || !name->is_hidden || name->is_old || name->target != wanted.filename()) continue;
    if (entry.name.ends_with(kJournals)) continue;  // whose run has the folder that it is beside
    const std::string path = (wanted.parent_path() / entry.name).string();
    if (path == own) continue;
    const UniqueFd folder = open_for_lock(path);
    const bool may_begin = !turn.is_ours() && name->process != 0 && process_lives(name->process);
    if (folder.valid() && (is_locked(folder) || may_begin)) {
      return PartialOutput{path, name->target, PartialState::kHeld, name->process, 0};
    }
  }
  return std::nullopt;
}

std::string parts_folder(const std::string& target, std::string_view id) {
  const fs::path path(target);
  return (path.parent_path() / fmt::format(".{}{}{}", path.filename().string(), kParts, id))
      .string();
}

}  // namespace shardwright
