// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "layout/gate_half.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// The stored tensors that one tensor is made of: by the expert's global number, then by half. They
/// point into a catalog, which must outlive them.
class TensorPieces {
 public:
  /// Whether its place was free. `expert`: nothing where the tensor has no axis of experts.
  [[nodiscard]] bool add(std::optional<std::int64_t> expert, GateHalf half,
                         const StoredTensor& piece);

  /// That none is missing. Errors: kUnmatchedSource.
  [[nodiscard]] Status check_count(const std::string& name) const;

  /// That, and that all are alike. Errors: kUnmatchedSource.
  [[nodiscard]] Status check(const std::string& name) const;

  /// The tensor: experts counted along a new first axis, the rows of the gate before the others.
  /// REQUIRES: check().
  [[nodiscard]] StoredTensor put_together(std::string name) const;

  [[nodiscard]] bool has_experts() const { return has_experts_; }
  /// Whether what was added is the tensor itself.
  [[nodiscard]] bool is_whole() const {
    return by_place_.size() == 1 && !has_experts_ && !has_halves_;
  }
  /// REQUIRES: one was added.
  [[nodiscard]] const StoredTensor& first() const { return *by_place_.begin()->second; }

 private:
  std::map<std::pair<std::int64_t, GateHalf>, const StoredTensor*> by_place_;
  bool has_experts_ = false;
  bool has_halves_ = false;
};

}  // namespace shardwright
