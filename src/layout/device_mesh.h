// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// Ranks in a row-major grid: the last axis varies fastest. The dense mesh of a Megatron-family run
/// is [PP, DP, CP, TP], that of its experts [PP, EDP, EP, ETP].
class DeviceMesh {
 public:
  /// `ranks` empty: 0, 1, 2, ... Errors: kComponentLayout for sizes below 1, too many ranks, or
  /// ranks that are not as many as the sizes say, negative or repeated.
  [[nodiscard]] static Result<DeviceMesh> make(const Dims& sizes,
                                               std::vector<std::int64_t> ranks = {});

  [[nodiscard]] const Dims& sizes() const { return sizes_; }
  [[nodiscard]] int axes() const { return sizes_.size(); }
  /// In row-major order.
  [[nodiscard]] const std::vector<std::int64_t>& ranks() const { return ranks_; }
  /// Of a rank, or nullopt for one that is not part of the mesh.
  [[nodiscard]] std::optional<Dims> coordinate_of(std::int64_t rank) const;
  /// Whether `ranks` are, in this order, those along `axis` at some place of the others.
  [[nodiscard]] bool has_line(int axis, std::span<const std::int64_t> ranks) const;

 private:
  DeviceMesh(const Dims& sizes, std::vector<std::int64_t> ranks)
      : sizes_(sizes), ranks_(std::move(ranks)) {}

  Dims sizes_;
  std::vector<std::int64_t> ranks_;
};

/// The meshes of a run of `world` ranks. DP and EDP are what the other sizes leave. Error:
/// kComponentLayout where they do not divide the world.
struct RunMeshSizes {
  std::int64_t world = 1;
  std::int64_t pipeline = 1;
  std::int64_t context = 1;
  std::int64_t tensor = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
};
[[nodiscard]] Result<DeviceMesh> dense_mesh(const RunMeshSizes& sizes);
[[nodiscard]] Result<DeviceMesh> expert_mesh(const RunMeshSizes& sizes);

}  // namespace shardwright
