// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exec/payload_digests.h"
#include "exec/piece_list.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The CRC-32s of what a piece wrote, in the order of PieceList::runs().
using PieceCrcs = std::vector<std::uint32_t>;

/// What is known of each piece of a list; nothing of those that are still to be done.
using FinishedPieces = std::vector<std::optional<PieceCrcs>>;

/// Who follows a long reading; nobody by default.
struct ReadWatch {
  /// Told the bytes that are read, a few times a second from the calling thread.
  std::function<void(std::uint64_t bytes)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;
  /// Told of what is as it was written; may be null.
  PayloadDigests* digests = nullptr;
};

/// Reads what finished pieces wrote back and forgets those whose bytes are not what they were: a
/// power failure keeps what the disk had, whatever a journal says. Returns the bytes of those that
/// stay. A file that is missing or can't be read is one that was not written. Error: kCancelled.
[[nodiscard]] Result<std::uint64_t> check_finished(const Plan& plan, const PieceList& pieces,
                                                   const Directory& target, int threads,
                                                   FinishedPieces& finished,
                                                   const ReadWatch& watch = {});

}  // namespace shardwright
