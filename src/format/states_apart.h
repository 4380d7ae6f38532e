// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "format/detect.h"

namespace shardwright {

/// Of checkpoints that a path means equally well, those that hold optimizer states alone are left
/// where others are there that may hold the weights: verl's `dist_ckpt` beside `huggingface`. The
/// others get a note. Reads `.metadata` of those that have one; one that can't be read stays.
[[nodiscard]] std::vector<Candidate> without_states_apart(const Directory& directory,
                                                          std::vector<Candidate> candidates);

}  // namespace shardwright
