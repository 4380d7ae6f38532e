// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/translated.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What is behind the names, dtypes and shapes of stored tensors, by their numbers.
struct StoredContents {
  /// The name of the file that a tensor lies in.
  std::function<std::string(std::uint32_t)> file;
  /// The whole numbers of a tensor. Errors: those of reading.
  std::function<Result<std::vector<std::int64_t>>(std::uint32_t)> numbers;
  /// Whether all bytes of a tensor are zero. Errors: those of reading.
  std::function<Result<bool>(std::uint32_t)> is_zero;
};

/// The stored tensors of a checkpoint, by name. Borrows them.
class StoredTensors {
 public:
  /// `contents` may be null: then only names, dtypes and shapes are known.
  StoredTensors(std::span<const TensorDesc> stored, const StoredContents* contents)
      : stored_(stored), contents_(contents) {
    for (std::uint32_t i = 0; i < stored.size(); ++i) by_name_.emplace(stored[i].name, i);
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(stored_.size()); }
  [[nodiscard]] const TensorDesc& operator[](std::uint32_t index) const { return stored_[index]; }
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }
  /// For messages: its name, behind that of its file where it is known.
  [[nodiscard]] std::string where(std::uint32_t index) const {
    const std::string tensor = translated("tensor {}", stored_[index].name);
    return contents_ == nullptr ? tensor : contents_->file(index) + ": " + tensor;
  }
  /// Whether numbers() and is_zero() can be asked.
  [[nodiscard]] bool can_read() const { return contents_ != nullptr; }
  [[nodiscard]] Result<std::vector<std::int64_t>> numbers(std::uint32_t index) const {
    return contents_->numbers(index);
  }
  [[nodiscard]] Result<bool> is_zero(std::uint32_t index) const {
    return contents_->is_zero(index);
  }

 private:
  std::span<const TensorDesc> stored_;
  const StoredContents* contents_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_;
};

}  // namespace shardwright
