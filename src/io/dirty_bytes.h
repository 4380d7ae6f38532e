// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "shardwright/catalog.h"

namespace shardwright {

/// What was written to a file and not yet sent on its way to the device. It goes in batches: what
/// threads write at once lies side by side in a file, and one large request for all of it takes the
/// device and the kernel less than several small ones. Safe for concurrent use.
class DirtyBytes {
 public:
  /// So many are sent together.
  static constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 20;

  /// Something was written. Gives what to send now, if it is enough.
  [[nodiscard]] std::optional<ByteRange> add(std::uint64_t offset, std::uint64_t length);

 private:
  std::mutex mutex_;
  std::uint64_t begin_ = 0;  // of all that was added since the last batch, to end_
  std::uint64_t end_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace shardwright
