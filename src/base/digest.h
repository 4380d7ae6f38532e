// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace shardwright {

/// XXH3-128 (seed 0) of bytes that arrive in pieces.
class Digest {
 public:
  Digest();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// 32 hex digits, the most significant first.
  [[nodiscard]] std::string text() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace shardwright
