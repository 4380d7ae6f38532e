// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/pickle_value.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A tensor of a rank's optimizer: which state of which parameter.
struct OptimizerStorage {
  enum class Kind : std::uint8_t { kMaster, kExpAvg, kExpAvgSq, kStep };
  std::size_t parameter = 0;
  Kind kind = Kind::kMaster;
  double step = 0.0;  ///< of kStep: the tensor's only element
};

/// A rank's optimizer as Megatron's Float16Optimizer saves it, or FP32Optimizer where
/// `is_mixed` is false.
class LegacyOptimizerLayout {
 public:
  /// `parameters` are the rank's, as torch lists them. Borrows both.
  LegacyOptimizerLayout(pickle::Document& document, std::span<const TensorDesc> parameters,
                        bool is_mixed)
      : document_(document), parameters_(parameters), is_mixed_(is_mixed) {}

  /// What `optimizer` of the rank's file is, made of the common state's `groups`, one dict or
  /// chained ones under 0 and 1. A tensor's storage has the key `first_key` plus its place in
  /// storages(). `state` is the common state: its iteration counts where neither a group nor
  /// `common_step` has one, which an optimizer that is not distributed keeps for all parameters.
  /// Errors: kStateUnreadable without groups, those of share_out.
  [[nodiscard]] Result<pickle::Value> make(pickle::Value state, std::optional<double> common_step,
                                           std::size_t first_key);

  [[nodiscard]] const std::vector<OptimizerStorage>& storages() const { return storages_; }

 private:
  [[nodiscard]] Result<pickle::Value> make_part(pickle::Value source,
                                                std::span<const std::vector<std::size_t>> shares);
  [[nodiscard]] Result<pickle::Value> copy_group(pickle::Value group);
  [[nodiscard]] pickle::Value make_tensor(std::size_t parameter, OptimizerStorage::Kind kind);
  [[nodiscard]] pickle::Value make_state(pickle::Value group, std::size_t parameter);

  pickle::Document& document_;
  std::span<const TensorDesc> parameters_;
  bool is_mixed_;
  std::size_t first_key_ = 0;
  double step_ = 0.0;  // where a group has none
  std::vector<OptimizerStorage> storages_;
};

}  // namespace shardwright
