// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright {

/// Gives equal strings the same small number: names that a file repeats a million times are stored
/// once. About text + 12 bytes per distinct string.
class StringPool {
 public:
  StringPool();
  /// The number of `text`; numbers count up from 0 in the order of first appearance. Nothing when
  /// too many strings collide, which only strings made for the purpose do, or when the pool is
  /// full.
  [[nodiscard]] std::optional<std::uint32_t> intern(std::string_view text);
  /// Valid until the next intern.
  [[nodiscard]] std::string_view text(std::uint32_t id) const {
    return std::string_view(text_).substr(ends_[id], ends_[id + 1] - ends_[id]);
  }
  [[nodiscard]] std::size_t size() const { return ends_.size() - 1; }

 private:
  void grow();
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id_plus_one = 0;  // 0: free
  };
  std::string text_;
  std::uint32_t last_ = 0;
  std::vector<std::uint64_t> ends_;  // text of id i: [ends_[i], ends_[i + 1])
  std::vector<Slot> slots_;          // a power of two, at most half full
};

}  // namespace shardwright
