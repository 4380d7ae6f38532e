// SPDX-License-Identifier: Apache-2.0
#include "io/same_bytes.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace shardwright {

Result<std::optional<std::uint64_t>> first_difference(SourceFiles& files, FilePlace a, FilePlace b,
                                                      std::uint64_t length) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
  std::vector<std::byte> left(static_cast<std::size_t>(std::min(kBlockBytes, length)));
  std::vector<std::byte> right(left.size());
  for (std::uint64_t done = 0; done < length; done += kBlockBytes) {
    const auto step = static_cast<std::size_t>(std::min(kBlockBytes, length - done));
    SW_TRY(files.read_at(a.file, a.offset + done, std::span(left).first(step)));
    SW_TRY(files.read_at(b.file, b.offset + done, std::span(right).first(step)));
    if (std::memcmp(left.data(), right.data(), step) == 0) continue;
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(step);
    const auto [found, other] = std::mismatch(left.begin(), end, right.begin());
    return done + static_cast<std::uint64_t>(found - left.begin());
  }
  return std::optional<std::uint64_t>();
}

}  // namespace shardwright
