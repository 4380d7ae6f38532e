// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/pickle_value.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A tensor of a rank's optimizer: which state of which parameter.
struct OptimizerStorage {
  std::size_t parameter = 0;
  std::string kind;                 ///< `exp_avg`; `param` is the master weight
  std::optional<double> step = {};  ///< of a step: the tensor's only element
};

/// A parameter of a rank, and which states of it there are, without the master weight.
struct TrainedParameter {
  TensorDesc desc;
  std::vector<std::string> states;
};

/// A rank's optimizer as Megatron's Float16Optimizer saves it, or FP32Optimizer where
/// `is_mixed` is false.
class LegacyOptimizerLayout {
 public:
  /// `parameters` are the rank's, as torch lists them. Borrows both.
  LegacyOptimizerLayout(pickle::Document& document, std::span<const TrainedParameter> parameters,
                        bool is_mixed)
      : document_(document), parameters_(parameters), is_mixed_(is_mixed) {}

  /// What `optimizer` of the rank's file is, made of the common state's `groups`, one dict or
  /// chained ones under 0 and 1. A tensor's storage has the key `first_key` plus its place in
  /// storages(). `state` is the common state: its iteration counts where neither a group nor
  /// `common_step` has one, which an optimizer that is not distributed keeps for all parameters.
  /// Errors: kStateUnreadable without groups, kOptimizerUnsupported where parameters of one group
  /// have different states, those of share_out.
  [[nodiscard]] Result<pickle::Value> make(pickle::Value state, std::optional<double> common_step,
                                           std::size_t first_key);

  [[nodiscard]] const std::vector<OptimizerStorage>& storages() const { return storages_; }

  /// Whether the loss scale is a tensor, which is left behind.
  [[nodiscard]] bool drops_loss_scale() const { return drops_loss_scale_; }

 private:
  [[nodiscard]] Result<pickle::Value> make_part(pickle::Value source,
                                                std::span<const std::vector<std::size_t>> shares);
  [[nodiscard]] Result<pickle::Value> copy_group(pickle::Value group);
  [[nodiscard]] pickle::Value make_tensor(std::size_t parameter, std::string_view kind,
                                          std::optional<double> step = {});
  [[nodiscard]] Status check_alike(std::span<const std::size_t> share) const;
  [[nodiscard]] pickle::Value make_state(pickle::Value group, std::size_t parameter);

  pickle::Document& document_;
  std::span<const TrainedParameter> parameters_;
  bool is_mixed_;
  std::size_t first_key_ = 0;
  double step_ = 0.0;  // where a group has none
  std::vector<OptimizerStorage> storages_;
  bool drops_loss_scale_ = false;
};

}  // namespace shardwright
