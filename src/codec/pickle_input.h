// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwright/error.h"

namespace shardwright::pickle {

/// Where the tokenizer gets its bytes from.
class Input {
 public:
  virtual ~Input() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Bytes from `position` on: at least `need` unless the input ends before. They stay valid until
  /// the next call. REQUIRES: position <= size().
  [[nodiscard]] virtual Result<std::span<const std::byte>> window(std::uint64_t position,
                                                                  std::size_t need) = 0;
};

/// Bytes that are already in memory.
class SpanInput final : public Input {
 public:
  explicit SpanInput(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Result<std::span<const std::byte>> window(std::uint64_t position,
                                                          std::size_t /*need*/) override {
    return bytes_.subspan(static_cast<std::size_t>(position));
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace shardwright::pickle
