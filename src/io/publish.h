// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/unique_fd.h"
#include "shardwright/storage.h"

namespace shardwright {

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

struct PublishOptions {
  std::string target;                ///< the folder to appear
  std::vector<std::string> sources;  ///< files or folders that are read meanwhile
  /// Files or folders that were read before: a target may lie in them, but not around them.
  std::vector<std::string> kept;
  std::uint64_t bytes_needed = 0;  ///< 0 skips the check for free space
  bool overwrite = false;          ///< replace a target that is not empty
  /// Told the path of a folder that could not be removed, so that the user can.
  std::function<void(const std::string&)> report_leftover;
};

/// An output folder that appears whole or not at all. It is built in a hidden folder beside the
/// target, `.<name>.partial-<pid>-<n>`, and moved into place by commit(). Until then the source and
/// the old target are untouched; without commit() the destructor removes the hidden folder. Not
/// thread-safe, except that directory() follows Directory's rules. Other processes may write into
/// partial_path() too, before commit().
class Publication {
 public:
  /// Checks everything that can be checked before the work and makes the hidden folder. Errors:
  /// kTargetInsideSource (the same, or one inside the other, whatever links lie between; of what is
  /// kept only the same or inside the target),
  /// kTargetExists (a file, a mount point, or not empty without `overwrite`), kNotFound and
  /// kPermission (the target's parent folder), kDiskSpace.
  [[nodiscard]] static Result<std::unique_ptr<Publication>> begin(
      PublishOptions options,
      std::shared_ptr<PublishCalls> calls = std::make_shared<PublishCalls>());
  ~Publication();
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  /// Where to write. Each file's own sync() is the writer's duty.
  [[nodiscard]] Directory& directory() { return *directory_; }
  [[nodiscard]] const std::string& partial_path() const { return partial_; }
  /// Makes all folders durable, moves the result into place and makes that durable. On error the
  /// old target is in place, unless the message says otherwise. To be called once.
  [[nodiscard]] Status commit();

 private:
  Publication(PublishOptions options, std::shared_ptr<PublishCalls> calls, std::string target,
              std::string partial);
  [[nodiscard]] Status open_partial();
  [[nodiscard]] Status sync_tree() const;
  [[nodiscard]] Status move_into_place();
  [[nodiscard]] Status replace_in_two_steps();
  void remove_or_report(const std::string& path);

  PublishOptions options_;
  std::shared_ptr<PublishCalls> calls_;
  std::string target_;   // absolute, links resolved
  std::string partial_;  // absolute
  UniqueFd lock_;        // held while the publication lives: tells a live run from a dead one
  std::unique_ptr<Directory> directory_;
  bool committed_ = false;
};

/// Hidden folders beside `target` that killed runs left: their process is gone and nobody holds
/// their lock. Sorted, absolute. They are never removed without being asked for.
[[nodiscard]] std::vector<std::string> stale_partials(std::string_view target);

}  // namespace shardwright
