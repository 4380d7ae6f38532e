// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/unique_fd.h"
#include "shardwright/error.h"

namespace shardwright {

/// What an unfinished output is to whoever wants the space back.
enum class PartialState : std::uint8_t {
  kAbandoned,  ///< no process is at it: it can go
  kHeld,       ///< a run works in it, or may
  kOnlyCopy,   ///< what was to be replaced, moved aside, and its place is empty: it must not go
};

/// A folder `.NAME.partial-<pid>-<n>` (with `-old`: what it was to replace), a file of one that is
/// written in one step, or a folder that several processes write, see parts_folder().
struct PartialOutput {
  std::string path;    ///< absolute
  std::string target;  ///< NAME: what it would have become
  PartialState state = PartialState::kHeld;
  pid_t process = 0;        ///< that began it, if on this machine; 0: of several
  std::uint64_t bytes = 0;  ///< in its files
};

/// What the paths of hidden folders of outputs begin with that are to be `target` (absolute).
[[nodiscard]] std::string partial_prefix(const std::string& target);

/// The path of this process's hidden folder of that number for `target` (absolute).
[[nodiscard]] std::string partial_path(const std::string& target, int number);

/// Where the journals of an unfinished output wait while it is moved into its place.
[[nodiscard]] std::string journals_path(const std::string& partial);

/// Makes a hidden folder for `target` (absolute), the first of this process's that is free. Errors:
/// kPermission, kDiskFull, kIo; kTargetExists where there are too many.
[[nodiscard]] Result<std::string> make_partial(const std::string& target);

/// Where what was in the target's place lies, where the file system can't swap folders.
[[nodiscard]] std::string aside_path(const std::string& partial);

/// The unfinished outputs that lie in a folder, by name. Errors: kNotFound, kPermission, kIo.
[[nodiscard]] Result<std::vector<PartialOutput>> list_partial_outputs(const std::string& folder);

/// Removes one that is abandoned, and looks again at that in its own turn. What it is then:
/// kAbandoned, and it is gone; else it stays. It counts as held too where somebody begins an output
/// beside it for longer than anybody waits. Follows no links. Errors: kPermission, kIo.
[[nodiscard]] Result<PartialState> remove_partial_output(const PartialOutput& output);

enum class FolderLock : std::uint8_t { kAlone, kWithOthers };

/// Takes the lock that says that a folder is being worked in, and waits for others for 2 s at most.
/// False: they still have it. Some network file systems have none: true, and the process number in
/// the name must do there.
bool lock_patiently(const UniqueFd& folder, FolderLock lock = FolderLock::kAlone);

/// The turn to begin an output in a folder: as long as it lives nobody else begins one there. Waits
/// for others for 2 s at most. File systems without locks let everybody through.
class BeginningTurn {
 public:
  explicit BeginningTurn(const std::string& folder);

  /// False: another still has it. It may have made its folder and not locked it yet.
  [[nodiscard]] bool is_ours() const { return is_ours_; }

 private:
  UniqueFd folder_;
  bool is_ours_;
};

/// The unfinished output of another run that is writing `target` (absolute) now, if there is one
/// besides `own`. Outside a turn of ours an unlocked one of a process that lives counts too.
/// Errors: kNotFound, kIo; a folder that may not be listed has none.
[[nodiscard]] Result<std::optional<PartialOutput>> rival_of(const std::string& target,
                                                            const BeginningTurn& turn,
                                                            const std::string& own = {});

/// The hidden folder `.NAME.parts-<id>` of an output that several processes write which agree on
/// nothing but `id`, 16 hex digits. `target`: absolute.
[[nodiscard]] std::string parts_folder(const std::string& target, std::string_view id);

}  // namespace shardwright
