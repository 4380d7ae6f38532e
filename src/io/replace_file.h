// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "shardwright/error.h"

namespace shardwright {

/// Writes a file in one step: whoever opens it sees the old bytes or the new ones, also after a
/// crash. Where the path is a link, the link is replaced, not what it points to. SIGINT, SIGTERM
/// and SIGHUP wait until it is there. Errors: kIo, kDiskFull, kPermission, kNotFound (the folder).
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes);

/// Whether replace_file could make a file there: what takes hours is not begun for one that can't
/// be. Errors: as replace_file.
[[nodiscard]] Status check_replaceable(const std::string& path);

/// A copy of a file that is about to be replaced, beside it: `.bak`, or the first free of `.bak1`,
/// `.bak2`, ... It goes with this object if the original is still in its place then; of one that
/// was replaced it is all there is, and stays.
class Backup {
 public:
  /// `bytes`: the original's. Errors: as above.
  [[nodiscard]] static Result<Backup> write(const std::string& original, std::string_view bytes);
  ~Backup();
  Backup(Backup&& other) noexcept;
  Backup& operator=(Backup&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether the original is still in its place.
  [[nodiscard]] bool is_needless() const;

 private:
  Backup(std::string original, dev_t device, ino_t inode, std::string path) noexcept
      : original_(std::move(original)), device_(device), inode_(inode), path_(std::move(path)) {}

  std::string original_;
  dev_t device_;
  ino_t inode_;
  std::string path_;
};

}  // namespace shardwright
