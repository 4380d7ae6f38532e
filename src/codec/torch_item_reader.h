// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/torch_archive.h"

namespace shardwright {

/// Finds the bytes of one-tensor archives (the items of a .distcp file) with as few reads and bytes
/// as possible: a small item costs one read, another one two, for its directory and its head. What
/// it can't know it guesses from the item before and checks against the directory. One per file and
/// thread. The file must outlive it.
class TensorItemReader {
 public:
  explicit TensorItemReader(const ReadableFile& file) : file_(&file) {}

  /// `item` is the whole archive. A conjugate or negative view is given with its flips. Errors: as
  /// TorchArchive's; kTorchArchive too for an archive whose object is no tensor.
  [[nodiscard]] Result<LocatedTensor> read(ByteRange item);

 private:
  [[nodiscard]] Status use_pickle(std::string pickle);

  const ReadableFile* file_;
  std::uint64_t directory_bytes_ = 1024;  // of the item before, end records included
  std::string pickle_;                    // of the item before: most items repeat it
  TorchTensor recipe_;
};

}  // namespace shardwright
