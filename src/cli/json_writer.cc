// SPDX-License-Identifier: Apache-2.0
#include "cli/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "base/translated.h"

namespace shardwright::cli {
namespace {

std::size_t digits_of(std::string_view& text) {
  const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(count);
  return count;
}

// As RFC 8259 has it: no plus sign, no zero in front, digits on both sides of a dot.
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool has_zero = text.starts_with('0');
  const std::size_t whole = digits_of(text);
  if (whole == 0 || (has_zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (digits_of(text) == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (digits_of(text) == 0) return false;
  }
  return text.empty();
}

}  // namespace

JsonWriter& JsonWriter::open(char opener, char closer, bool one_line) {
  begin_value();
  out_ += opener;
  levels_.push_back({closer, one_line || (!levels_.empty() && levels_.back().one_line)});
  return *this;
}

JsonWriter& JsonWriter::close() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.one_line) out_.append(1, '\n').append(2 * levels_.size(), ' ');
  out_ += level.closer;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  begin_value();
  append_quoted(name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  begin_value();
  append_quoted(value);
  return *this;
}

JsonWriter& JsonWriter::number(std::int64_t value) {
  begin_value();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::number(std::uint64_t value) {
  begin_value();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::real(double value) {
  if (std::isnan(value)) return text("nan");  // whatever its sign
  if (!std::isfinite(value)) return text(fmt::format("{}", value));
  begin_value();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::number_text(std::string_view value) {
  if (!is_json_number(value)) return text(value);
  begin_value();
  out_ += value;
  return *this;
}

JsonWriter& JsonWriter::flag(bool value) {
  begin_value();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  begin_value();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::texts(std::string_view name, const std::vector<std::string>& values) {
  key(name).open_list();
  for (const std::string& value : values) text(value);
  return close();
}

std::string JsonWriter::take() {
  out_ += '\n';
  return std::exchange(out_, {});
}

void JsonWriter::begin_value() {
  if (std::exchange(after_key_, false) || levels_.empty()) return;
  Level& level = levels_.back();
  if (!std::exchange(level.empty, false)) out_ += level.one_line ? ", " : ",";
  if (!level.one_line) out_.append(1, '\n').append(2 * levels_.size(), ' ');
}

void JsonWriter::append_quoted(std::string_view value) {
  out_ += '"';
  while (!value.empty()) {
    const CodePoint point = front_code_point(value);
    if (!point.valid) {
      out_ += translated("\xEF\xBF\xBD");
    } else if (point.value == U'"' || point.value == U'\\') {
      out_ += '\\';
      out_ += value.front();
    } else if (point.value == U'\n') {
      out_ += "\\n";
    } else if (point.value < 0x20 || (point.value >= 0x7F && point.value < 0xA0)) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(point.value));
    } else {
      out_ += value.substr(0, point.bytes);
    }
    value.remove_prefix(point.bytes);
  }
  out_ += '"';
}

}  // namespace shardwright::cli
