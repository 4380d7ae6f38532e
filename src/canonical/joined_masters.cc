// SPDX-License-Identifier: Apache-2.0
#include "canonical/joined_masters.h"

#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fail.h"
#include "compare/master_form.h"
#include "compare/master_weights.h"

namespace shardwright {
namespace {

class Joining {
 public:
  explicit Joining(const MasterHalves& halves) : halves_(halves) {}

  Result<bool> run() {
    SW_TRY(find_remainders());
    if (weight_of_.empty()) return false;
    for (DraftTensor& draft : halves_.tensors) SW_TRY(join(draft));
    return true;
  }

 private:
  Status find_remainders() {
    const std::vector<StoredTensor>& tensors = halves_.catalog.tensors;
    std::unordered_map<std::string_view, std::uint32_t> weights;
    for (std::uint32_t i = 0; i < tensors.size(); ++i) weights.emplace(tensors[i].desc.name, i);
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      const auto name = weight_of_master(tensors[i].desc.name);
      if (!name) continue;
      const auto weight = weights.find(*name);
      if (weight == weights.end()) {
        return fail(Code::kUsage,
                    "tensor {}: this weight is left out but its optimizer state is kept, which is "
                    "the other half of it; keep or drop both",
                    *name);
      }
      if (is_remainder(tensors[i].desc, tensors[weight->second].desc.dtype)) {
        weight_of_.emplace(i, weight->second);
      }
    }
    return {};
  }

  Status join(DraftTensor& draft) {
    ViewList joined;
    std::size_t remainders = 0;
    for (const TensorView& view : draft.recipe.views) {
      const auto weight = weight_of_.find(view.source);
      if (weight == weight_of_.end()) continue;
      ++remainders;
      TensorView upper = view;
      upper.source = upper_half(view.source, weight->second);
      joined.push_back(upper);
      joined.push_back(view);
    }
    if (remainders == 0) return {};
    if (remainders != draft.recipe.views.size()) {
      return fail(Code::kOptimizerMismatch,
                  "tensor {}: found remainders of some master weights and others whole, expected "
                  "one form; convert without the optimizer (--optimizer drop)",
                  draft.desc.name);
    }
    draft.recipe.views = std::move(joined);
    draft.desc.dtype = DType::kF32;
    return {};
  }

  // The weight once more, as the first term of a sum; what reads the model reads the other one.
  std::uint32_t upper_half(std::uint32_t remainder, std::uint32_t weight) {
    const auto known = upper_of_.find(remainder);
    if (known != upper_of_.end()) return known->second;
    const std::uint32_t upper = halves_.repeat(weight);
    halves_.weighted.push_back({upper, 1.0F, 0, 0.0});
    halves_.weighted.push_back({remainder, 1.0F, 1, 0.0, true});
    upper_of_.emplace(remainder, upper);
    return upper;
  }

  const MasterHalves& halves_;
  std::unordered_map<std::uint32_t, std::uint32_t> weight_of_;  // of remainders
  std::unordered_map<std::uint32_t, std::uint32_t> upper_of_;   // likewise
};

}  // namespace

Result<bool> join_masters(const MasterHalves& halves) { return Joining(halves).run(); }

}  // namespace shardwright
