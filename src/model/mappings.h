// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/mapping_file.h"

namespace shardwright {

/// Mappings that several may hold, so that those of all families are read once in a process: that
/// takes longer than to convert a small model. Immutable, so threads may share it. A span of it
/// borrows of it and its copies.
class Mappings {
 public:
  Mappings() = default;
  explicit Mappings(std::vector<Mapping> all)
      : all_(std::make_shared<const std::vector<Mapping>>(std::move(all))) {}

  [[nodiscard]] auto begin() const { return list().begin(); }
  [[nodiscard]] auto end() const { return list().end(); }
  [[nodiscard]] bool empty() const { return list().empty(); }
  [[nodiscard]] std::size_t size() const { return list().size(); }

 private:
  [[nodiscard]] std::span<const Mapping> list() const {
    return all_ ? std::span<const Mapping>(*all_) : std::span<const Mapping>();
  }

  std::shared_ptr<const std::vector<Mapping>> all_;
};

}  // namespace shardwright
