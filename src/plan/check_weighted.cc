// SPDX-License-Identifier: Apache-2.0
#include "plan/check_weighted.h"

#include <cmath>

#include "base/fail.h"

namespace shardwright {
namespace {

bool is_narrow_float(DType dtype) { return is_castable_float(dtype) && dtype != DType::kF64; }

}  // namespace

Result<TermsOfSources> TermsOfSources::make(const Plan& plan,
                                            const std::vector<bool>& is_calculated) {
  TermsOfSources terms(plan, is_calculated);
  if (plan.weighted.empty()) return terms;
  terms.weighted_.resize(plan.source.tensors.size(), nullptr);
  for (const WeightedSource& weighted : plan.weighted) {
    if (weighted.values >= terms.weighted_.size()) {
      return fail(Code::kPlanInvalid, "plan: a term is a tensor that is not there");
    }
    const std::string& name = plan.source.tensors[weighted.values].desc.name;
    if (!std::isfinite(weighted.weight) || !std::isfinite(weighted.add)) {
      return fail(Code::kPlanInvalid, "tensor {}: its weight in a sum is no finite number", name);
    }
    if (terms.weighted_[weighted.values] != nullptr) {
      return fail(Code::kPlanInvalid, "tensor {}: it is two terms of sums", name);
    }
    terms.weighted_[weighted.values] = &weighted;
  }
  return terms;
}

Result<std::uint32_t> TermsOfSources::term_in(const TensorRecipe& recipe, const TensorDesc& target,
                                              std::uint32_t source) const {
  const auto weighted = [&](std::uint32_t one) -> const WeightedSource* {
    return one < weighted_.size() ? weighted_[one] : nullptr;
  };
  const WeightedSource* const found = weighted(source);
  if ((found == nullptr) != (weighted(recipe.views[0].source) == nullptr)) {
    return fail(Code::kPlanInvalid, "tensor {}: it is made of terms of a sum and of other tensors",
                target.name);
  }
  if (found == nullptr) return 0;
  if (recipe.add != 0.0) {
    return fail(Code::kPlanInvalid, "tensor {}: a constant is added to a sum", target.name);
  }
  if (recipe.quantising != nullptr) {
    return fail(Code::kPlanInvalid, "tensor {}: a sum is quantised", target.name);
  }
  const DType dtype = plan_->source.tensors[source].desc.dtype;
  if (found->is_low_half) {
    if (target.dtype == DType::kF32 && (dtype == DType::kI16 || dtype == DType::kF32)) {
      return found->term;
    }
    return fail(Code::kPlanInvalid,
                "tensor {}: found {} of {} as lower halves of {}, expected int16", target.name,
                torch_name(dtype), plan_->source.tensors[source].desc.name,
                torch_name(target.dtype));
  }
  if (dtype == target.dtype && !is_castable_float(dtype)) return found->term;
  if (is_narrow_float(target.dtype) && ((*is_calculated_)[source] || is_narrow_float(dtype))) {
    return found->term;
  }
  return fail(Code::kDtypeUnsupported,
              "tensor {}: found {}, expected float32, bfloat16 or float16, whose sums are made in "
              "float32",
              plan_->source.tensors[source].desc.name, torch_name(dtype));
}

}  // namespace shardwright
