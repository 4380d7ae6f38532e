// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/pickle_value.h"
#include "codec/torch_file.h"
#include "format/legacy/legacy_optimizer.h"
#include "layout/optimizer_groups.h"

namespace shardwright {

/// The states that Float16Optimizer and FP32Optimizer keep of each parameter of a rank, one of them
/// or several that are chained, as a torch.save file has them.
class TorchOptimizer {
 public:
  /// `optimizer` is a value of `torch`, which is of `file`; both are borrowed. Error:
  /// kOptimizerUnsupported where it has no parameter groups, or parameters without a state.
  [[nodiscard]] static Result<TorchOptimizer> open(const ReadableFile& file, const TorchFile& torch,
                                                   pickle::Value optimizer);

  /// Whether it keeps anything but groups: of SGD without momentum only the master weights.
  [[nodiscard]] bool has_states() const { return has_states_; }
  /// Of all chained ones, as they are stored.
  [[nodiscard]] std::span<const pickle::Value> stored_groups() const { return stored_groups_; }
  /// The same, read.
  [[nodiscard]] const std::vector<OptimizerGroup>& groups() const { return groups_; }

  /// The states of a rank's `parameters`: `shares[g]` are those of group g, in its order. Errors:
  /// kOptimizerUnsupported with the parameter or the group, those of TorchFile::locate.
  [[nodiscard]] Result<RankOptimizer> read(std::span<const RankParameter> parameters,
                                           std::span<const std::vector<std::size_t>> shares) const;

 private:
  TorchOptimizer(const ReadableFile& file, const TorchFile& torch) : file_(&file), torch_(&torch) {}

  [[nodiscard]] Status add(pickle::Value dict);
  [[nodiscard]] Status add_groups(pickle::Value state, pickle::Value groups, pickle::Value masters);

  const ReadableFile* file_;
  const TorchFile* torch_;
  bool has_states_ = false;
  std::vector<pickle::Value> stored_groups_;
  std::vector<OptimizerGroup> groups_;
  /// A list for each group; nothing where the model's weights are the master weights.
  std::vector<pickle::Value> masters_;
  std::vector<std::vector<pickle::Value>> states_;  ///< of each group's parameters
};

}  // namespace shardwright
