// SPDX-License-Identifier: Apache-2.0
#include "convert/finished_plan.h"

#include <string_view>
#include <utility>

#include "base/translated.h"
#include "canonical/attention_heads.h"
#include "convert/carried_documents.h"
#include "convert/carried_pickles.h"
#include "convert/left_out_extras.h"
#include "convert/memory_budget.h"
#include "convert/renames.h"
#include "layout/tower.h"

namespace shardwright {
namespace {

// A torch_dist checkpoint loads with other TPs than it was cut for; files of ranks don't.
Status check_heads(Drafting& drafting) {
  const TargetParts& parts = drafting.parts;
  const Status status =
      check_attention_heads(parts.tensors, parts.arguments, [&](std::string_view name) {
        const ComponentRoute* route = route_of(parts.routes, name);
        return route == nullptr ? tensor_size_of(name, drafting.request().parallel)
                                : parts.components.find(route->name)->tensor;
      });
  if (status || drafting.traits().is_of_fixed_ranks) return status;
  drafting.tell(status.error().message +
                translated("; what is written loads with such a size only"));
  return {};
}

// From drafts to the plan's source side and all that the target lays out.
Status finish_drafts(Drafting& drafting) {
  PreparedConversion& result = drafting.result;
  TargetParts& parts = drafting.parts;
  SW_TRY(refuse_hostile_pickles(parts, *result.source.files));
  SW_TRY(drafting.target->check_tensors(result.family, parts));
  SW_TRY(check_heads(drafting));
  SW_TRY(mend_documents(result.request, result.source, parts.components.components, parts,
                        result.notes));
  SW_TRY(list_left_out(drafting));
  SW_TRY(drafting.target->make_entries(result.request, parts, result.notes));
  result.renames = renames_of(parts.tensors, result.plan, drafting.catalog,
                              std::exchange(drafting.stored_names, {}));
  drafting.mappings = {};
  result.plan.source = std::move(drafting.catalog);
  result.plan.source.objects.clear();  // the target's parts name the ones that go along
  result.components = drafting.target->components(parts);
  return {};
}

}  // namespace

Result<PreparedConversion> finish_plan(Drafting drafting) {
  PreparedConversion& result = drafting.result;
  SW_TRY(finish_drafts(drafting));
  SW_TRY(drafting.target->lay_out(result.request, drafting.parts, result.plan, result.notes));
  SW_TRY(check_plan(result.plan));
  result.peak_memory_bytes = SW_TRY(budget_of(result.request, result.source, result.plan)).bytes();
  return std::move(result);
}

}  // namespace shardwright
