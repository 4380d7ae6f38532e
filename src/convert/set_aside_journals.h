// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/publish.h"

namespace shardwright {

/// The journals of an unfinished output, whole or in parts. They are gone when it appears, and
/// there again where it does not: without them all that is written would have to be written anew.
/// Borrows the publication. Not thread-safe.
class SetAsideJournals {
 public:
  explicit SetAsideJournals(Publication& publication) : publication_(publication) {}

  /// Removes them, and remembers what is in them.
  [[nodiscard]] Status take();
  /// Writes them again. What can't be written is left out: whoever goes on writes more then.
  void put_back() noexcept;

 private:
  Publication& publication_;
  std::vector<std::pair<std::string, std::string>> journals_;  // names, and what is in them
};

}  // namespace shardwright
