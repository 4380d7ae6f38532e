// SPDX-License-Identifier: Apache-2.0
#include "model/vocabulary_rows.h"

#include <limits>

#include "base/checked.h"
#include "base/fail.h"
#include "layout/state_name.h"
#include "model/instances.h"

namespace shardwright {

std::optional<std::int64_t> VocabularyRows::of(std::string_view megatron) const {
  if (!usual || beyond.empty()) return usual;
  const std::optional<StateName> state = split_state_name(megatron);
  const auto more = beyond.find(state ? state->tensor : megatron);
  if (more == beyond.end()) return usual;
  return checked_add(*usual, more->second).value_or(std::numeric_limits<std::int64_t>::max());
}

Result<std::int64_t> rows_by_rule(const Rule& rule, const Scope& scope) {
  return rule.shape.empty() ? scope.value_of("vocab") : rule.shape[0].evaluate(scope);
}

Result<VocabularyRows> vocabulary_rows(const Mapping& mapping, const ModelSizes& sizes,
                                       std::span<const TensorDesc> canonical) {
  VocabularyRows rows;
  const auto usual = sizes.find("vocab");
  if (usual == sizes.end()) return rows;
  rows.usual = usual->second;
  const TensorIndex index = SW_TRY(TensorIndex::make(canonical));
  const ModelSizes actual = SW_TRY(observe_sizes(mapping, sizes, Side::kMegatron, index));
  const Selection selection =
      SW_TRY((Selector(mapping, actual, Side::kMegatron, index, nullptr).select()));
  for (const Instance& instance : selection.instances) {
    if (!instance.rule->vocabulary) continue;
    const Scope scope{actual, instance.bindings};
    const std::int64_t own = SW_TRY(rows_by_rule(*instance.rule, scope));
    if (own == usual->second) continue;
    for (std::size_t part = 0; part < instance.rule->megatron.size(); ++part) {
      const TensorDesc* desc = SW_TRY(find_megatron(*instance.rule, part, scope, index));
      if (desc != nullptr) rows.beyond.emplace(desc->name, own - usual->second);
    }
  }
  return rows;
}

}  // namespace shardwright
