// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "layout/legacy_evidence.h"

namespace shardwright {

struct LegacyVerdict {
  Diagnosis diagnosis;
  /// Bytes to compare before asking again, where names, arguments and contents decide nothing.
  std::optional<ReplicaQuestion> question;
};

/// What a folder of `mp_rank_*` folders is. Pure: equal evidence, equal verdict. `path` stays
/// empty.
[[nodiscard]] LegacyVerdict classify_legacy(const LegacyEvidence& evidence);

}  // namespace shardwright
