// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// Puts values one behind the other. Ranks are of one program, so this is no file format.
class MessageWriter {
 public:
  MessageWriter() = default;
  explicit MessageWriter(std::uint8_t kind) : bytes_(1, static_cast<char>(kind)) {}

  MessageWriter& number(std::uint64_t value);
  MessageWriter& text(std::string_view value);
  MessageWriter& numbers(const std::vector<std::uint32_t>& values);
  MessageWriter& error(const Error& value);
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes them off again, in that order. Errors: kInternal for what no MessageWriter made.
class MessageReader {
 public:
  /// Borrows `bytes`.
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }
  [[nodiscard]] Result<std::uint8_t> kind();
  [[nodiscard]] Result<std::uint64_t> number();
  [[nodiscard]] Result<std::string> text();
  [[nodiscard]] Result<std::vector<std::uint32_t>> numbers();
  [[nodiscard]] Result<Error> error();

 private:
  [[nodiscard]] Result<std::string_view> take(std::uint64_t count);

  std::string_view rest_;
};

}  // namespace shardwright
