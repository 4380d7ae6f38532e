// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/piece_list.h"
#include "shardwright/plan.h"

namespace shardwright {

/// Where in the target's files bytes lie.
struct PayloadPlace {
  std::uint32_t file = 0;  ///< index into Plan::target.files
  std::uint64_t offset = 0;
};

/// Bytes of a chunk's payload, without the framing of its archive.
[[nodiscard]] std::uint64_t payload_bytes(const StoredTensor& tensor, std::uint32_t chunk);

/// Where the first byte of a chunk's payload lies.
[[nodiscard]] Result<PayloadPlace> place_of_payload(const StoredTensor& tensor,
                                                    std::uint32_t chunk);

/// Where the first byte of a run lies.
[[nodiscard]] Result<PayloadPlace> place_of(const Plan& plan, const PieceRun& run);

}  // namespace shardwright
