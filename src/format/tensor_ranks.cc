// SPDX-License-Identifier: Apache-2.0
#include "format/tensor_ranks.h"

#include "model/component_names.h"
#include "state/recorded_run.h"
#include "state/run_config.h"

namespace shardwright {

TensorRanks tensor_ranks_of(const Checkpoint& checkpoint) {
  if (has_component_names(checkpoint.catalog)) return {};
  Arguments arguments = checkpoint.arguments;
  if (arguments.empty()) arguments = read_run_config(checkpoint.run_config).value_or(Arguments());
  const AxisSizes sizes = recorded_run(arguments).sizes;
  return {sizes.tensor, sizes.expert_tensor ? sizes.expert_tensor : sizes.tensor};
}

}  // namespace shardwright
