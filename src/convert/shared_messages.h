// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// What the ranks of a shared conversion tell each other: the first byte of a RankSession's
/// message.
enum class SharedMessage : std::uint8_t {
  kPlan = 'p',      ///< to rank 0: plan_summary()
  kReadBack = 'r',  ///< of rank 0: a folder, bytes of a piece: what lies there is read back first
  kFolder = 'f',    ///< of rank 0: the hidden folder, and what it is to be if nothing is there
  kKnown = 'k',     ///< to rank 0: this rank knows that
  kBegin = 'b',     ///< of rank 0: its files are there too; bytes of a piece
  kPieces = 'w',    ///< of rank 0: pieces to be done
  kNoMore = 'n',    ///< of rank 0: there will be no others
  kDone = 'd',      ///< to rank 0: a piece, its CRC-32s
  kDurable = 'e',   ///< to rank 0: all that this rank wrote is; bytes read, files opened, digests
};

/// Equal for ranks that would write the same from the same files. Errors: those of
/// source_fingerprint().
[[nodiscard]] Result<std::string> plan_summary(const PreparedConversion& conversion);

}  // namespace shardwright
