// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/allowance.h"
#include "codec/pickle_value.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What a torch file holds beside the tensors that are read of it.
struct TensorsBeside {
  std::vector<std::string> keys;  ///< of values with tensors in them, at any depth
  bool has_optimizer = false;     ///< some of these are an optimizer's states

  /// Adds the key of a value that is not read, if there are tensors in it; returns whether. What is
  /// walked through is taken from `allowance` (kLimit).
  [[nodiscard]] Result<bool> add(pickle::Value key, pickle::Value value, Allowance& allowance);
};

/// What of an optimizer whose states are tensors of a checkpoint is none, as a sentence.
[[nodiscard]] std::string state_beside(std::optional<std::int64_t> step);

/// Notes what is left out of a file; who asks for the optimizer will be refused.
void tell_beside(const TensorsBeside& beside, const std::string& path, Checkpoint& checkpoint);

}  // namespace shardwright
