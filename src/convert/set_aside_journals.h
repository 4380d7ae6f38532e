// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/publish.h"
#include "io/unique_fd.h"

namespace shardwright {

/// The journals of an unfinished output, whole or in parts, while it is moved into its place. They
/// must not be in it then, and must outlive a kill: without them all that is written would have to
/// be written anew. So they wait in a hidden folder of their own, with a note of the folder that
/// they are of, and go when the output is there. Borrows the publication. Not thread-safe.
class SetAsideJournals {
 public:
  explicit SetAsideJournals(Publication& publication) : publication_(publication) {}
  /// Drops them, or puts them back where an exception passes: memory ran out on the way.
  ~SetAsideJournals();
  SetAsideJournals(const SetAsideJournals&) = delete;
  SetAsideJournals& operator=(const SetAsideJournals&) = delete;

  /// Moves them out of the hidden folder. Errors: those of making a folder and a file; kIo.
  [[nodiscard]] Status take();
  /// Moves them back, the output has not appeared. What can't be moved waits for
  /// return_set_aside().
  void put_back() noexcept;
  /// Removes them: the output is in its place.
  void drop() noexcept;

 private:
  Publication& publication_;
  std::string folder_;              // empty: nothing is set aside
  std::uint64_t inode_ = 0;         // of the hidden folder that they are of
  UniqueFd lock_;                   // tells others that this process is at it
  std::vector<std::string> names_;  // of journals
};

/// Moves journals that a killed process had set aside back into the hidden folders of `output` that
/// they are of, and gives one that parts had begun its name again. Where nothing is to be moved, or
/// can be, nothing changes.
void return_set_aside(const std::string& output);

}  // namespace shardwright
