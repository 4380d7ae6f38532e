// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

/// What Megatron keeps of each parameter for Adam: the master weight and two moments. So are the
/// names of their tensors in torch_dist: `optimizer.state.exp_avg.` and the parameter's. Lion has
/// the first moment only, SGD and Muon a `momentum_buffer`.
inline constexpr std::array<std::string_view, 3> kStateKinds = {"param", "exp_avg", "exp_avg_sq"};

/// What Megatron calls the master weights of optimizers that are not distributed, and before 0.16
/// of distributed ones too.
inline constexpr std::string_view kOwnMasters = "fp32_param";

/// The name of an optimizer state that is named like a tensor of the model:
/// `chained_0.optimizer.state.exp_avg.decoder.x`, split. Borrows the name.
struct StateName {
  std::string_view prefix;  ///< `chained_0.optimizer.state.exp_avg.`
  std::string_view bare;    ///< `optimizer.state.exp_avg.decoder.x`: chains differ between layouts
  /// `exp_avg`; a master weight is `param`, also where the optimizer is not distributed and says
  /// `fp32_param`.
  std::string_view kind;
  std::string_view tensor;  ///< of the model: `decoder.x`
};

/// nullopt for names of other things.
[[nodiscard]] std::optional<StateName> split_state_name(std::string_view name);

/// `optimizer.state.exp_avg.decoder.x`.
[[nodiscard]] std::string join_state_name(std::string_view kind, std::string_view tensor);

/// What the states of a parameter of two names are called after: T5's head and its position
/// embeddings are modules of two names (T5Model.__init__), of which the optimizer takes the second,
/// where the model has that too. Other names are their own.
[[nodiscard]] std::string_view name_with_states(std::string_view parameter);

}  // namespace shardwright
