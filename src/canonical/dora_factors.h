// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "io/source_files.h"
#include "shardwright/plan.h"

namespace shardwright {

/// An adapted source whose outputs get a length that was learned, and the tensor with these
/// lengths.
struct LearnedLengths {
  std::uint32_t adapted = 0;  ///< index into Plan::adapted
  std::uint32_t lengths = 0;  ///< index into Plan::source.tensors
};

/// Sets the factors of a plan's adapted sources: the learned length by the one that the output's
/// weights have with the product added (the root of their sum of squares, which is summed in
/// float64 in the order of the weights and rounded to float32). Reads those tensors once, on
/// several threads. Of the plan only the source side is used. Errors: those of reading;
/// kValueOverflow, naming the tensor, for an output whose weights are all zero or no numbers.
[[nodiscard]] Status set_dora_factors(Plan& plan, const std::vector<LearnedLengths>& learned,
                                      SourceFiles& files, int threads);

}  // namespace shardwright
