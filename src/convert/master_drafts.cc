// SPDX-License-Identifier: Apache-2.0
#include "convert/master_drafts.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "canonical/joined_masters.h"
#include "compare/master_weights.h"
#include "convert/conversion_source.h"
#include "convert/more_sources.h"

namespace shardwright {
namespace {

bool is_cast(const DraftTensor& weight, const Catalog& catalog) {
  return std::ranges::any_of(weight.recipe.views, [&](const TensorView& view) {
    return catalog.tensors[view.source].desc.dtype != weight.desc.dtype;
  });
}

}  // namespace

Status join_masters(Drafting& drafting) {
  const bool has_halves = drafting.master_form == MasterForm::kRemainders;
  if (!has_halves || keeps_names(drafting.request())) return {};
  const auto repeat = [&](std::uint32_t source) { return repeat_source(drafting, source); };
  const bool are_joined = SW_TRY(join_masters(
      {drafting.catalog, drafting.parts.tensors, drafting.result.plan.weighted, repeat}));
  if (!are_joined) return {};
  drafting.tell(
      "master weights are stored as what the weights lack of them "
      "(--use-precision-aware-optimizer); they are written as the float32 numbers that both "
      "make, which a run without that flag loads");
  return {};
}

void cast_masters(Drafting& drafting) {
  if (!drafting.request().dtype) return;
  std::vector<DraftTensor>& tensors = drafting.parts.tensors;
  std::unordered_map<std::string_view, const TensorRecipe*> masters;  // by their weights' names
  for (const DraftTensor& tensor : tensors) {
    const auto weight = weight_of_master(tensor.desc.name);
    if (weight) masters.emplace(*weight, &tensor.recipe);
  }
  bool is_any = false;
  for (DraftTensor& tensor : tensors) {
    const auto master = masters.find(tensor.desc.name);
    if (master == masters.end() || !is_cast(tensor, drafting.catalog)) continue;
    tensor.recipe = *master->second;
    is_any = true;
  }
  if (!is_any) return;
  drafting.tell("weights get their new dtype from the optimizer's master weights");
}

}  // namespace shardwright
