// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/unique_fd.h"
#include "shardwright/error.h"

namespace shardwright {

/// A name in a folder, for the functions that look at what it is.
struct NamePlace {
  int root = -1;      ///< of the directory that must not be left
  int folder = -1;    ///< that holds the name: `root` or beneath it
  std::string name;   ///< the last name of a path
  std::string shown;  ///< the whole path, for messages
};

/// Opens what a link leads to, with the flags of open(2). Links may be followed in two cases: they
/// lead to something beneath `root`, or they are those of a Hugging Face cache, whose
/// `snapshots/<revision>/` holds links `../../blobs/<hash>` (one `../` more for each folder) to
/// regular files beside `snapshots`. Errors: kPathEscapes for any other link, kNotAFile for one
/// that leads nowhere.
[[nodiscard]] Result<UniqueFd> open_link(const NamePlace& place, int flags);

/// Why what has this mode (of stat) can't be read as a file. Error: kNotAFile.
[[nodiscard]] std::unexpected<Error> not_a_file(unsigned mode, const std::string& shown);

}  // namespace shardwright
