// SPDX-License-Identifier: Apache-2.0
#include "state/yaml_lines.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/fail.h"

namespace shardwright {
namespace {

// Configurations have some thousand lines. Each edit reads the file again.
constexpr std::size_t kMostYamlBytes = std::size_t{1} << 20;

std::unexpected<Error> other_style(const YamlLines::Path& path) {
  return fail(Code::kYamlCorrupt,
              "entry {}: its value is not written below or beside its key, which is how it could "
              "be edited",
              fmt::join(path, "."));
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// The key and the value of a map's entry.
using Pair = std::pair<YAML::Node, YAML::Node>;

std::optional<Pair> pair_at(const YAML::Node& document, const YamlLines::Path& path) {
  Pair found{YAML::Node(), document};
  for (const std::string& key : path) {
    if (!found.second.IsMap()) return std::nullopt;
    const YAML::Node map = found.second;
    std::optional<Pair> next;
    for (const auto& entry : map) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) {
        next.emplace(entry.first, entry.second);
        break;
      }
    }
    if (!next) return std::nullopt;
    found.first.reset(next->first);
    found.second.reset(next->second);
  }
  return found;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Result<YAML::Node> parse(const std::vector<std::string>& lines) {
  try {
    return YAML::Load(joined(lines));
  } catch (const YAML::Exception& error) {
    return fail(Code::kYamlCorrupt, "{}", error.what());
  }
}

}  // namespace

Result<YamlLines> YamlLines::read(std::string_view text) {
  if (text.size() > kMostYamlBytes) {
    return fail(Code::kLimit, "{} bytes, limit {}", text.size(), kMostYamlBytes);
  }
  YamlLines yaml;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    yaml.lines_.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  yaml.document_ = std::make_shared<const YAML::Node>(SW_TRY(parse(yaml.lines_)));
  return yaml;
}

bool YamlLines::has(const Path& path) const { return pair_at(*document_, path).has_value(); }

std::optional<std::string> YamlLines::scalar(const Path& path) const {
  const auto found = pair_at(*document_, path);
  return found && found->second.IsScalar() ? std::optional(found->second.Scalar()) : std::nullopt;
}

std::vector<std::string> YamlLines::keys(const Path& path) const {
  std::vector<std::string> keys;
  const auto found = pair_at(*document_, path);
  if (!found || !found->second.IsMap()) return keys;
  for (const auto& entry : found->second) {
    if (entry.first.IsScalar()) keys.push_back(entry.first.Scalar());
  }
  return keys;
}

Result<std::optional<YamlLines::Entry>> YamlLines::find(const Path& path) const {
  const std::optional<Pair> found = pair_at(*document_, path);
  if (!found) return std::nullopt;
  const YAML::Mark mark = found->first.Mark();
  Entry entry{static_cast<std::size_t>(mark.line), 1, static_cast<std::size_t>(mark.column)};
  if (entry.first >= lines_.size() || indent_of(lines_[entry.first]) != entry.indent) {
    return other_style(path);
  }
  // Lists stand below their key without being indented.
  const bool is_list = found->second.IsSequence();
  for (std::size_t i = entry.first + 1; i < lines_.size(); ++i, ++entry.count) {
    const std::size_t indent = indent_of(lines_[i]);
    const bool is_blank = indent == lines_[i].size();
    const bool is_item = is_list && indent == entry.indent && lines_[i][indent] == '-';
    if (!is_blank && indent <= entry.indent && !is_item) break;
  }
  return entry;
}

Result<YamlLines::Entry> YamlLines::place_in(const Path& path) const {
  Path above = path;
  above.pop_back();
  const std::optional<Pair> map = pair_at(*document_, above);
  if (!map || !map->second.IsMap() || map->second.size() == 0) return other_style(path);
  // Before the first key that sorts behind it, as PyYAML would write it.
  std::vector<std::string> names = keys(above);
  if (names.empty()) return other_style(path);  // keys that are no text
  const auto behind =
      std::ranges::find_if(names, [&](const std::string& name) { return name > path.back(); });
  const bool is_last = behind == names.end();
  above.push_back(is_last ? names.back() : *behind);
  const std::optional<Entry> beside = SW_TRY(find(above));
  if (!beside) return other_style(path);
  return Entry{beside->first + (is_last ? beside->count : 0), 0, beside->indent};
}

Result<YamlLines::Entry> YamlLines::find_or_place(const Path& path) const {
  const std::optional<Entry> found = SW_TRY(find(path));
  if (found) return *found;
  return place_in(path);
}

Status YamlLines::replace(const Entry& entry, std::span<const std::string> lines) {
  std::vector<std::string> edited = lines_;
  const auto first = edited.begin() + static_cast<std::ptrdiff_t>(entry.first);
  const auto at = edited.erase(first, first + static_cast<std::ptrdiff_t>(entry.count));
  edited.insert(at, lines.begin(), lines.end());
  document_ = std::make_shared<const YAML::Node>(
      SW_TRY(parse(edited)));  // fails where an anchor went that is asked for
  lines_ = std::move(edited);
  return {};
}

Status YamlLines::set(const Path& path, std::string_view value) {
  const Entry entry = SW_TRY(find_or_place(path));
  const std::string line =
      fmt::format("{}{}: {}", std::string(entry.indent, ' '), path.back(), value);
  SW_TRY(replace(entry, {&line, 1}));
  return check_is_there(path);
}

// What is written behind an open quote is a part of that text.
Status YamlLines::check_is_there(const Path& path) const {
  return has(path) ? Status() : other_style(path);
}

Status YamlLines::set_lines(const Path& path, std::span<const std::string> lines) {
  const Entry entry = SW_TRY(find_or_place(path));
  std::vector<std::string> block = {std::string(entry.indent, ' ') + path.back() + ":"};
  for (const std::string& line : lines) block.push_back(std::string(entry.indent + 2, ' ') + line);
  SW_TRY(replace(entry, block));
  return check_is_there(path);
}

Status YamlLines::erase(const Path& path) {
  const std::optional<Entry> entry = SW_TRY(find(path));
  return entry ? replace(*entry, {}) : Status();
}

Result<std::vector<std::string>> YamlLines::lines_below(const Path& path) const {
  const std::optional<Entry> entry = SW_TRY(find(path));
  if (!entry || entry->count < 2) return other_style(path);
  const auto first = lines_.begin() + static_cast<std::ptrdiff_t>(entry->first) + 1;
  std::vector<std::string> below(first, first + static_cast<std::ptrdiff_t>(entry->count) - 1);
  const std::size_t indent = indent_of(below.front());
  for (std::string& line : below) line.erase(0, std::min(indent, indent_of(line)));
  return below;
}

std::string YamlLines::text() const { return joined(lines_); }

}  // namespace shardwright
