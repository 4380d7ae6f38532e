// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layout/mixer_parts.h"
#include "layout/plain_norms.h"
#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A run of rows of a module's tensor, and where torch_dist has it.
struct RowRun {
  std::string tensor;     ///< its name in torch_dist
  std::int64_t from = 0;  ///< of the module's rows
  std::int64_t to = 0;    ///< of the tensor's
  std::int64_t rows = 0;
};

/// The tensors of a whole model's modules as torch_dist has them. What tensor parallelism cuts is
/// put together rank by rank, so that a tensor of several parts has those of the first rank, then
/// those of the second.
class ModuleTensors {
 public:
  /// `modules` are a model's own tensors under the names of its modules; experts are counted along
  /// an axis. REQUIRES: they outlive this.
  explicit ModuleTensors(std::span<const TensorDesc> modules);

  /// The name in torch_dist of a tensor, or of what is made of several of its tensors.
  [[nodiscard]] std::string canonical_name(std::string_view module) const;

  /// What a tensor, or an optimizer state of its shape, is made of: one run that is all of it, or
  /// the runs of its parts. `tensor_parallel`: the size of the run that saved it. Errors:
  /// kUnsupportedFormat where it has parts and nothing tells the size, or its form is none that
  /// torch_dist has; kShapeMismatch.
  [[nodiscard]] Result<std::vector<RowRun>> runs_of(
      const TensorDesc& module, std::optional<std::int64_t> tensor_parallel) const;

 private:
  struct Part {
    std::string tensor;
    std::int64_t rows = 0;
  };
  [[nodiscard]] Result<std::vector<Part>> parts_of(const TensorDesc& module, std::string_view name,
                                                   std::int64_t tensor_parallel) const;

  PlainNorms plain_norms_;
  TensorsByName by_name_;
};

}  // namespace shardwright
