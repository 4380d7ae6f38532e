// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "codec/torch_file.h"

namespace shardwright {

/// torch.save calls the folder in an archive as the file that it writes. Of files whose place among
/// others only their names tell, two that are in each other's place show by that. `saved_as` may be
/// anything else, as of files that were saved through an open one. `others`: so many numbers of the
/// name, the first ones, are no rank's and may be others (a layer's). Error: kRankMisplaced where
/// it is the name of `file` with other numbers.
[[nodiscard]] Status check_saved_name(const ReadableFile& file, std::string_view saved_as,
                                      std::size_t others = 0);

/// The names that torch saved files under which are numbered in order, as layers are: a number may
/// be another than it was, for layers may have been numbered anew, but what came behind still does.
class SavedOrder {
 public:
  /// `file`, a path, comes behind those before it. `saved_as` is as of check_saved_name(). Error:
  /// kRankMisplaced where the file that was saved under that name came before one of them.
  [[nodiscard]] Status add(std::string_view file, std::string_view saved_as);

 private:
  struct Last {
    std::string number;  // without zeros in front
    std::string file;
    std::string saved_as;
  };
  std::map<std::string, Last, std::less<>> last_;  // by the words of the name
};

/// TorchFile::open of such a file.
[[nodiscard]] Result<TorchFile> open_rank_file(const ReadableFile& file, std::size_t others = 0);

}  // namespace shardwright
