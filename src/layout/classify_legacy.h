// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "layout/legacy_evidence.h"

namespace shardwright {

/// To which format and sizes a command converts.
struct NextConversion {
  std::string_view format;
  AxisSizes sizes;
};

struct LegacyVerdict {
  Diagnosis diagnosis;
  /// Bytes to compare before asking again, where names, arguments and contents decide nothing.
  std::optional<ReplicaQuestion> question;
  /// What the command in `diagnosis.next` does, where it is a conversion.
  std::optional<NextConversion> conversion;
};

/// What a folder of `mp_rank_*` folders is. Pure: equal evidence, equal verdict. `path` stays
/// empty.
[[nodiscard]] LegacyVerdict classify_legacy(const LegacyEvidence& evidence);

}  // namespace shardwright
