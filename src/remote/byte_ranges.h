// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "shardwright/catalog.h"

namespace shardwright {

/// Which bytes of a file are there: ranges that touch are one.
class ByteRanges {
 public:
  /// Adds a range. Gives the one that it is in now. Those that overlap become one, too.
  ByteRange add(ByteRange range);
  /// Whether any byte of a range is there.
  [[nodiscard]] bool meets(ByteRange range) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by where they begin
};

}  // namespace shardwright
