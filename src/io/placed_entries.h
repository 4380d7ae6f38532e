// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

class PublishCalls;

/// What was moved to where an output is to be: a folder, or the entries of one. It can be moved
/// back, and what was there before is there again. Once something is in its place no call needs
/// memory before it says so. Not thread-safe. Borrows the calls.
class PlacedEntries {
 public:
  explicit PlacedEntries(PublishCalls& calls) : calls_(calls) {}

  /// Moves a folder to where nothing is, or an empty one. 0 or an errno.
  [[nodiscard]] int move(const std::string& made, const std::string& target);
  /// Puts a folder in the place of another. Error: kIo and the like; the other is in its place
  /// then, unless the message says otherwise.
  [[nodiscard]] Status swap(const std::string& made, const std::string& target);
  /// Moves what is in a folder into another, in the place of what has the same names: folders
  /// before files, since what a tracker names is there when it says so. Where one can't be moved,
  /// also for want of memory, those before it are moved back.
  [[nodiscard]] Status insert(const std::string& made, const std::string& target);
  /// Where what the first one replaced is now; empty where it replaced nothing.
  [[nodiscard]] const std::string& replaced() const { return entries_.front().replaced; }

  /// Moves all back, the last first. Gives `why`, and the one that could not be moved with it.
  [[nodiscard]] Status take_back(Status why);
  /// After take_back(): whether all are back.
  [[nodiscard]] bool are_back() const { return are_back_; }
  /// After take_back(): where the first one lies. To be asked once.
  [[nodiscard]] std::string release_made() { return std::move(entries_.front().made); }

 private:
  struct Entry {
    std::string made;
    std::string target;
    std::string replaced;      // where what was in its place is now; empty: nowhere
    bool is_old_gone = false;  // there was a file, which is lost
  };

  [[nodiscard]] Status insert_one(const std::string& made, const std::string& target,
                                  bool is_folder);
  [[nodiscard]] Status swap_in(const std::string& made, const std::string& target,
                               std::string& replaced);
  [[nodiscard]] bool move_back(Entry& entry);

  PublishCalls& calls_;
  std::vector<Entry> entries_;
  bool are_back_ = false;
};

}  // namespace shardwright
