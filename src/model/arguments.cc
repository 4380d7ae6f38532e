// SPDX-License-Identifier: Apache-2.0
#include "model/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace shardwright {
namespace {

std::optional<std::vector<double>> as_numbers(const ArgValue& value) {
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return *reals;
  const auto* whole = std::get_if<std::vector<std::int64_t>>(&value);
  if (whole == nullptr) return std::nullopt;
  return std::vector<double>(whole->begin(), whole->end());
}

struct Printer {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
  std::string operator()(double number) const { return fmt::format("{}", number); }
  std::string operator()(const std::string& text) const { return fmt::format("'{}'", text); }
  std::string operator()(const std::vector<std::int64_t>& list) const {
    return fmt::format("[{}]", fmt::join(list, ", "));
  }
  std::string operator()(const std::vector<double>& list) const {
    return fmt::format("[{}]", fmt::join(list, ", "));
  }
  std::string operator()(const std::vector<std::string>& list) const {
    return list.empty() ? "[]" : fmt::format("['{}']", fmt::join(list, "', '"));
  }
};

}  // namespace

std::string to_string(const ArgValue& value) { return std::visit(Printer{}, value); }

std::optional<double> as_number(const ArgValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

bool same_value(const ArgValue& a, const ArgValue& b) {
  if (a.index() == b.index()) return a == b;
  const std::optional<double> x = as_number(a);
  if (x) return x == as_number(b);
  const std::optional<std::vector<double>> list = as_numbers(a);
  return list && list == as_numbers(b);
}

const ArgValue* find_set(const Arguments& values, std::string_view name) {
  const auto found = values.find(name);
  if (found == values.end() || std::holds_alternative<std::monostate>(found->second)) {
    return nullptr;
  }
  return &found->second;
}

std::optional<bool> find_flag(const Arguments& values, std::string_view name) {
  const ArgValue* const value = find_set(values, name);
  const bool* const flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  return flag == nullptr ? std::nullopt : std::optional(*flag);
}

bool is_true(const Arguments& values, std::string_view name) {
  return find_flag(values, name).value_or(false);
}

SaidArgument first_said(const Arguments& values, std::string_view names) {
  const std::string_view first = names.substr(0, names.find('|'));
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('|'));
    if (const ArgValue* value = find_set(values, name)) return {name, value};
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return {first, nullptr};
}

}  // namespace shardwright
