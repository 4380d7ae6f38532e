// SPDX-License-Identifier: Apache-2.0
#include "cli/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace shardwright::cli {

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
  if (!std::isfinite(value)) return text(fmt::format("{}", value));
  begin_value();
  fmt::format_to(std::back_inserter(out_), "{}", value);
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
      out_ += "\xEF\xBF\xBD";
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
