// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shardwright/plan.h"

namespace shardwright {

/// Which source tensors are terms of sums. Borrows the plan.
class TermsOfSources {
 public:
  /// `is_calculated`: source tensors that are multiplied or added to before. Error: kPlanInvalid
  /// for terms that are no tensors, are listed twice or have no finite weight.
  [[nodiscard]] static Result<TermsOfSources> make(const Plan& plan,
                                                   const std::vector<bool>& is_calculated);

  /// The term that a source tensor is in a recipe; 0 where nothing is added. Errors: kPlanInvalid
  /// for a recipe of terms and other tensors, one that adds a constant to a sum or
  /// quantises it; kDtypeUnsupported for types that float32 doesn't hold.
  [[nodiscard]] Result<std::uint32_t> term_in(const TensorRecipe& recipe, const TensorDesc& target,
                                              std::uint32_t source) const;

  /// Whether its values are joined to others, whatever types they can be made to.
  [[nodiscard]] bool is_low_half(std::uint32_t source) const {
    return source < weighted_.size() && weighted_[source] != nullptr &&
           weighted_[source]->is_low_half;
  }

 private:
  TermsOfSources(const Plan& plan, const std::vector<bool>& is_calculated)
      : plan_(&plan), is_calculated_(&is_calculated) {}

  const Plan* plan_;
  const std::vector<bool>* is_calculated_;
  std::vector<const WeightedSource*> weighted_;  // by source tensor
};

}  // namespace shardwright
