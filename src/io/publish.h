// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/begun_output.h"
#include "io/unique_fd.h"
#include "shardwright/storage.h"

namespace shardwright {

class PlacedEntries;

/// The system calls that make a result durable and visible; tests replace them to fail one.
/// Each returns 0 or an errno.
class PublishCalls {
 public:
  virtual ~PublishCalls() = default;
  virtual int sync_folder(const std::string& path);
  virtual int rename(const std::string& from, const std::string& to);
  /// Swaps two folders in one step. EINVAL or ENOSYS: this file system cannot.
  virtual int exchange(const std::string& a, const std::string& b);
  /// Removes a folder and what is in it; follows no links.
  virtual int remove_tree(const std::string& path);
};

/// How a target that is not empty is replaced.
enum class Replace : std::uint8_t {
  kWhole,    ///< the folder goes as a whole
  kEntries,  ///< only the entries that the result has too; the folder and its others stay
};

struct PublishOptions {
  std::string target;                ///< the folder to appear
  std::vector<std::string> sources;  ///< files or folders that are read meanwhile
  /// Files or folders that were read before: a target may lie in them, but not around them.
  std::vector<std::string> kept;
  std::uint64_t bytes_needed = 0;  ///< 0 skips the check for free space
  /// A hidden folder that an earlier run left: it is taken over with what is in it. Empty: a new
  /// one.
  std::string unfinished = {};
  /// Whether the hidden folder stays when there is no commit().
  bool keeps_unfinished = false;
  /// Of an output that several processes write: what they agree on, see parts_folder(). Empty: it
  /// is this process's alone.
  std::string parts_id = {};
  /// With `parts_id`: this process writes a part, and others may too. It makes the folder where it
  /// is missing. Else it is the one that publishes, and alone.
  bool is_part = false;
  /// Asked, before the work and again before replacing, how a target that is not empty may be
  /// replaced; null: not at all.
  std::function<Result<Replace>(const std::string& target)> may_replace;
  /// Asked just before the result is moved into its place; null: nobody. An error is that of
  /// commit().
  std::function<Status()> may_appear = {};
  /// Asked once it is there, and again when that is durable; null: nobody. On an error it is taken
  /// back, and what was there before is there again.
  std::function<Status()> may_stay = {};
  /// Told the path of a folder that could not be removed, so that the user can.
  std::function<void(const std::string&)> report_leftover;
};

/// What is done to the hidden folder when all in it is durable, directly before it is moved into
/// its place, how it is undone where it does not appear then or is taken back, and what is done
/// once it is sure to stay, before what it replaced is removed. Each may be null.
struct LastStep {
  std::function<Status()> act;
  std::function<void()> undo;
  std::function<void()> done = {};
};

/// An output folder that appears whole or not at all. It is built in a hidden folder beside the
/// target, `.<name>.partial-<pid>-<n>`, and moved into place by commit(). Until then the source and
/// the old target are untouched; without commit() the destructor removes the hidden folder (unless
/// it is to be kept), and folders above the target that were made for it. Not thread-safe, except
/// that directory() follows Directory's rules. Other processes may write into partial_path() too,
/// before commit().
class Publication final : private BegunOutput {
 public:
  /// Checks everything that can be checked before the work and makes the hidden folder. Errors:
  /// kTargetInsideSource (the same, or one inside the other, whatever links lie between; of what is
  /// kept only the same or inside the target),
  /// kTargetExists (a file; another run is writing it now; not empty without `may_replace`, or a
  /// folder that check_may_be_replaced refuses; what may_replace says), kNotFound and kPermission
  /// (the folder that the target, or the first missing one above it, is made in), kDiskSpace,
  /// kPartsMissing (the hidden folder that parts would have made).
  [[nodiscard]] static Result<std::unique_ptr<Publication>> begin(
      PublishOptions options,
      std::shared_ptr<PublishCalls> calls = std::make_shared<PublishCalls>());
  ~Publication();

  /// Where to write. Each file's own sync() is the writer's duty.
  [[nodiscard]] Directory& directory() { return *directory_; }
  [[nodiscard]] const std::string& partial_path() const { return partial_; }
  /// Where it is to appear: absolute, links resolved.
  [[nodiscard]] const std::string& target_path() const { return target_; }
  /// Whether something is to be replaced: if not, and `may_stay` is asked, commit() replaces
  /// nothing that has come meanwhile.
  [[nodiscard]] bool replaces() const { return replace_.has_value(); }
  /// Whether this process made the hidden folder.
  [[nodiscard]] bool is_new() const { return is_new_; }
  /// Makes the hidden folder durable, and those in it: what a part does once its files are.
  [[nodiscard]] Status sync_folders() const;
  /// Makes all folders durable, moves the result into place and makes that durable. On error the
  /// old target is in place, unless the message says otherwise. What it replaced lies under a name
  /// that no part of a saved plan works in until it is removed. To be called once.
  [[nodiscard]] Status commit(const LastStep& last = {});

 private:
  Publication(PublishOptions options, std::shared_ptr<PublishCalls> calls, std::string target,
              std::string partial);
  [[nodiscard]] Status make_hidden_folder(const std::string& parts);
  [[nodiscard]] Status take_over(const std::string& unfinished);
  [[nodiscard]] Status join(const std::string& parts);
  [[nodiscard]] Status open_partial();
  [[nodiscard]] Status sync_tree() const;
  [[nodiscard]] Status check_target();
  [[nodiscard]] std::unexpected<Error> others_came() const;
  [[nodiscard]] Status make_parents();
  [[nodiscard]] std::string shown(const std::string& folder) const;
  [[nodiscard]] Status commit_once(const LastStep& last);
  [[nodiscard]] Status move_into_place(PlacedEntries& placed);
  [[nodiscard]] Status leave_parts_name();
  void go_back_to_parts_name() noexcept;
  [[nodiscard]] Status take_back(PlacedEntries& placed, const std::string& above, Status why);
  [[nodiscard]] bool is_ours(const std::string& path) const noexcept;
  void clean_up() noexcept;
  void abandon() noexcept override;
  void remove_or_report(const std::string& path);

  PublishOptions options_;
  std::shared_ptr<PublishCalls> calls_;
  std::string target_;                     // absolute, links resolved
  std::string partial_;                    // absolute
  std::string parts_;                      // its name before it was left; empty: it was not
  std::vector<std::string> made_parents_;  // outermost first
  std::optional<Replace> replace_;         // of a target that is not empty
  UniqueFd lock_;  // held while the publication lives: tells a live run from a dead one
  std::unique_ptr<Directory> directory_;
  bool is_new_ = false;
  bool committed_ = false;
};

/// Hidden folders beside `target` that killed runs left: their process is gone and nobody holds
/// their lock. Sorted, absolute. They are never removed without being asked for.
[[nodiscard]] std::vector<std::string> stale_partials(std::string_view target);

}  // namespace shardwright
