// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::cli {

/// Writes JSON in the order of the calls, indented by two spaces, a plain list on one line. Text
/// that is not UTF-8 gets U+FFFD where it is broken, so the result is always valid. A million
/// chunks cost their text and nothing else.
///
/// Calls must pair up: key() before every value in an object, close() for every open.
class JsonWriter {
 public:
  JsonWriter& open_object() { return open('{', '}', false); }
  /// An object that stays on one line.
  JsonWriter& open_line() { return open('{', '}', true); }
  JsonWriter& open_list() { return open('[', ']', false); }
  /// A list that stays on one line.
  JsonWriter& open_row() { return open('[', ']', true); }
  JsonWriter& close();
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);
  JsonWriter& number(std::int64_t value);
  JsonWriter& number(std::uint64_t value);
  /// Infinities and NaN have no JSON: they become text.
  JsonWriter& real(double value);
  /// A number that is already text, and as text what is no finite one: `nan`, `1+2j`.
  JsonWriter& number_text(std::string_view value);
  JsonWriter& flag(bool value);
  JsonWriter& null();

  // A key and its value in one.
  JsonWriter& text(std::string_view name, std::string_view value) { return key(name).text(value); }
  JsonWriter& number(std::string_view name, std::int64_t value) { return key(name).number(value); }
  JsonWriter& number(std::string_view name, std::uint64_t value) { return key(name).number(value); }
  JsonWriter& real(std::string_view name, double value) { return key(name).real(value); }
  JsonWriter& flag(std::string_view name, bool value) { return key(name).flag(value); }
  JsonWriter& texts(std::string_view name, const std::vector<std::string>& values);

  /// The document and a line end. REQUIRES: everything is closed.
  [[nodiscard]] std::string take();

 private:
  struct Level {
    char closer;
    bool one_line;
    bool empty = true;
  };
  JsonWriter& open(char opener, char closer, bool one_line);
  void begin_value();
  void append_quoted(std::string_view value);

  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace shardwright::cli
