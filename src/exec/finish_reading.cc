// SPDX-License-Identifier: Apache-2.0
#include "exec/finish_reading.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "exec/threads.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostBlockBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastBlockBytes = std::uint64_t{64} << 10;

}  // namespace

Status read_begun_records(SourceFiles& files, int threads, std::uint64_t buffer_bytes) {
  const auto share = buffer_bytes / static_cast<std::uint64_t>(std::max(threads, 1));
  const std::uint64_t block = std::clamp(share, kLeastBlockBytes, kMostBlockBytes);
  const std::vector<FileRange> rest = files.unread_rest(block);
  if (rest.empty()) return {};
  std::atomic<std::size_t> next{0};
  const auto most = static_cast<int>(std::min<std::size_t>(rest.size(), 1024));
  return run_on_threads(std::min(threads, most), {}, [&]() -> Status {
    const auto buffer =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(block));
    for (std::size_t i = next++; i < rest.size(); i = next++) {
      const ByteRange range = rest[i].range;
      SW_TRY(files.read_at(rest[i].file, range.offset,
                           std::span(buffer.get(), static_cast<std::size_t>(range.length))));
    }
    return {};
  });
}

Status finish_reading(SourceFiles& files, int threads) {
  constexpr std::uint64_t kBufferBytes = std::uint64_t{16} << 20;
  SW_TRY(read_begun_records(files, threads, kBufferBytes));
  return files.check_unchanged();
}

}  // namespace shardwright
