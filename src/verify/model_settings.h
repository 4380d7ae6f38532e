// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "canonical/families.h"
#include "verify/view.h"

namespace shardwright {

/// A note on what two models compute with differently besides tensors (the base of the rotary
/// embedding, the epsilon of norms), as config.json or the run's arguments say. Empty where they
/// agree, where one of them says nothing of it, and where no family is known to read it by.
[[nodiscard]] std::string differing_model_note(const View& left, const View& right,
                                               const FamilyChoice& choice);

}  // namespace shardwright
