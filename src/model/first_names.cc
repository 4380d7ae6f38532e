// SPDX-License-Identifier: Apache-2.0
#include "model/first_names.h"

#include "model/instances.h"

namespace shardwright {

Result<FirstNames> first_names(const Mapping& mapping, const ModelSizes& sizes,
                               std::span<const TensorDesc> canonical) {
  const TensorIndex index = SW_TRY(TensorIndex::make(canonical));
  const ModelSizes actual = SW_TRY(observe_sizes(mapping, sizes, Side::kMegatron, index));
  const Selection selection =
      SW_TRY((Selector(mapping, actual, Side::kMegatron, index, nullptr).select()));
  FirstNames names;
  if (!selection.missing.empty()) return names;
  for (const Instance& instance : selection.instances) {
    if (instance.rule->aliases.empty()) continue;
    const Scope scope{actual, instance.bindings};
    std::string first = SW_TRY(instance.rule->megatron[0].render(scope));
    const TensorDesc* const found = SW_TRY(find_megatron(*instance.rule, 0, scope, index));
    if (found != nullptr && found->name != first) names.emplace(found->name, std::move(first));
  }
  return names;
}

}  // namespace shardwright
