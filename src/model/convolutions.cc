// SPDX-License-Identifier: Apache-2.0
#include "model/convolutions.h"

#include "model/instances.h"

namespace shardwright {
namespace {

// The shape that a rule states of its only Megatron tensor; empty where it does not.
Result<Dims> shape_in_mapping(const Instance& instance, const Scope& scope) {
  const Rule& rule = *instance.rule;
  Dims shape;
  const bool is_one = rule.megatron.size() == 1 && rule.stack.empty() &&
                      std::holds_alternative<Rename>(rule.transform);
  if (!is_one) return shape;
  for (const SizeExpr& extent : rule.shape) shape.push_back(SW_TRY(extent.evaluate(scope)));
  return shape;
}

bool is_flat(const Dims& stored, const Dims& stated) {
  if (stated.size() < 3 || stored.size() != 2 || stored[0] != stated[0]) return false;
  const Result<std::int64_t> all = element_count(stated);
  const Result<std::int64_t> here = element_count(stored);
  return all && here && *all == *here;
}

}  // namespace

Result<std::vector<TensorDesc>> flat_convolutions(const Mapping& mapping, const ModelSizes& sizes,
                                                  std::span<const TensorDesc> canonical) {
  const TensorIndex index = SW_TRY(TensorIndex::make(canonical));
  const ModelSizes actual = SW_TRY(observe_sizes(mapping, sizes, Side::kMegatron, index));
  const Selection selection =
      SW_TRY((Selector(mapping, actual, Side::kMegatron, index, nullptr).select()));
  std::vector<TensorDesc> flat;
  for (const Instance& instance : selection.instances) {
    const Scope scope{actual, instance.bindings};
    const Dims shape = SW_TRY(shape_in_mapping(instance, scope));
    if (shape.size() < 3) continue;
    const TensorDesc* desc = SW_TRY(find_megatron(*instance.rule, 0, scope, index));
    if (desc != nullptr && is_flat(desc->shape, shape)) {
      flat.push_back({desc->name, desc->dtype, shape});
    }
  }
  return flat;
}

}  // namespace shardwright
