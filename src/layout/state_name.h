// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace shardwright {

/// The name of an optimizer state that is named like a tensor of the model:
/// `chained_0.optimizer.state.exp_avg.decoder.x` is {`chained_0.optimizer.state.exp_avg.`,
/// `decoder.x`}. Borrows the name.
struct StateName {
  std::string_view state;   ///< with the dot at its end
  std::string_view tensor;  ///< of the model
};

/// nullopt for names of other things.
[[nodiscard]] std::optional<StateName> split_state_name(std::string_view name);

}  // namespace shardwright
