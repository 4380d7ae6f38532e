// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/error.h"

namespace shardwright {

/// Whether a code tells of files that could not be read, or of bytes that are no weights in any
/// container: where files say themselves what tensors they hold, such a defect hides tensors.
[[nodiscard]] constexpr bool is_of_storage_or_weights(Code code) {
  const int number = static_cast<int>(code);
  switch (number / 10) {
    case 20:  // limits
    case 21:  // zip archives
    case 22:  // pickles and torch's archives
    case 23:  // safetensors
      return true;
    default:
      return number / 100 == 1;  // storage
  }
}

/// What a refusal is about.
enum class CodeGroup : std::uint8_t {
  kContents,      ///< the checkpoint is damaged, lacks something or contradicts itself
  kUnsupported,   ///< it may be right, but is not converted so: the caller has a choice
  kSurroundings,  ///< the machine, the output or the caller
};

[[nodiscard]] constexpr CodeGroup group_of(Code code) {
  switch (code) {
    case Code::kShortRead:
    case Code::kPathEscapes:
    case Code::kUnmatchedSource:
    case Code::kUnmatchedTarget:
    case Code::kShapeMismatch:
    case Code::kDtypeUnsupported:
    case Code::kReplicasDiffer:
    case Code::kComponentLayout:
    case Code::kModelIncomplete:
    case Code::kArgumentsContradict:
    case Code::kReplicaKeys:
      return CodeGroup::kContents;
    case Code::kLimit:
    case Code::kZipUnsupported:
    case Code::kPickleUnsupported:
    case Code::kSafetensorsDtype:
    case Code::kUnsupportedFormat:
    case Code::kItemTransformed:
    case Code::kOptimizerUnsupported:
    case Code::kLossySource:
    case Code::kTwoCheckpoints:
      return CodeGroup::kUnsupported;
    default:
      break;
  }
  switch (static_cast<int>(code) / 100) {
    case 2:
    case 3:
      return CodeGroup::kContents;
    case 4:
      return CodeGroup::kUnsupported;
    default:
      return CodeGroup::kSurroundings;
  }
}

}  // namespace shardwright
