// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "codec/torch_archive.h"
#include "layout/state_name.h"

namespace shardwright {

/// A state of a parameter, or of one flat buffer of parameters: `exp_avg`, and `param` for the
/// master weight.
struct StatePlace {
  std::string kind;
  LocatedTensor place;
};
using StatePlaces = std::vector<StatePlace>;

/// A buffer of a distributed optimizer: its buckets one behind the other, without the padding at
/// their ends.
struct ParamStateBuffer {
  DType dtype = DType::kBF16;  ///< of the model's parameters
  std::int64_t elements = 0;
  StatePlaces places;  ///< in the order of kStateKinds; Lion has no second moment
};

/// Finds a tensor in the file that the pickle is of.
using LocateTensor = std::function<Result<LocatedTensor>(pickle::Value)>;

/// The buffers of one sub-optimizer as `distrib_optim.pt` holds them, by their numbers. Errors:
/// kOptimizerUnsupported for another optimizer's states, another dtype than float32, and buckets
/// that are stored one by one, as before 2024. Source: get_parameter_state_dp_zero in
/// megatron/core/optimizer/distrib_optimizer.py.
[[nodiscard]] Result<std::vector<ParamStateBuffer>> read_param_state(pickle::Value state,
                                                                     const LocateTensor& locate);

}  // namespace shardwright
