// SPDX-License-Identifier: Apache-2.0
#include "model/config_rules.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "model/config_values.h"
#include "model/layer_kinds.h"
#include "model/window_layers.h"

namespace shardwright {
namespace {

using RuleKind = ConfigRule::Kind;

// Whole numbers below this are doubles: 2^53.
constexpr double kExact = 9007199254740992.0;

}  // namespace

const ArgValue* first_set(const Arguments& values, std::span<const std::string> names) {
  for (const std::string& name : names) {
    const ArgValue* value = find_set(values, flag_name(name).name);
    if (value != nullptr) return value;
  }
  return nullptr;
}

ArgValue inverse(const ArgValue& value) {
  const bool* on = std::get_if<bool>(&value);
  return on == nullptr ? value : ArgValue{!*on};
}

bool conditions_hold(const ConfigRule& rule, const Arguments& hf) {
  return std::ranges::all_of(rule.conditions, [&hf](const auto& condition) {
    const ArgValue* value = find_set(hf, condition.first);
    if (std::holds_alternative<std::monostate>(condition.second)) return value == nullptr;
    const auto* word = std::get_if<std::string>(&condition.second);
    if (word != nullptr && *word == "set") return value != nullptr;
    return value != nullptr && same_value(*value, condition.second);
  });
}

std::string_view leaf_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

const ArgValue* setting_of(const Mapping& mapping, const Arguments& hf, std::string_view key) {
  if (mapping.config_section.empty()) return find_set(hf, key);
  return find_set(hf, mapping.config_section + "." + std::string(key));
}

std::optional<std::int64_t> whole(const ArgValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr || std::trunc(*real) != *real || std::abs(*real) > kExact)
    return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::int64_t whole_or(const ArgValue* value, std::int64_t otherwise) {
  return value == nullptr ? otherwise : whole(*value).value_or(otherwise);
}

Result<double> checked_positive(std::string_view name, const ArgValue& value) {
  const std::optional<double> number = as_number(value);
  if (number && *number > 0.0 && std::isfinite(*number)) return *number;
  return fail(Code::kConfigMissing, "{}: found {}, expected a number above 0", name,
              to_string(value));
}

ArgValue plain_number(double value) {
  constexpr double kRounding = 1e-9;
  const double nearest = std::round(value);
  const bool is_whole =
      std::abs(nearest) < kExact && std::abs(value - nearest) <= kRounding * std::abs(nearest);
  return is_whole ? ArgValue{static_cast<std::int64_t>(nearest)} : ArgValue{value};
}

Result<std::int64_t> layers_of(const ModelSizes& sizes) {
  const std::int64_t layers = SW_TRY((Scope{sizes, {}}.value_of("layers")));
  if (layers >= 0 && layers <= kMaxLayers) return layers;
  return fail(Code::kLimit, "layers: found {}, expected at most {}", layers, kMaxLayers);
}

bool lists_kinds(const ConfigRule& rule) {
  return rule.kind == RuleKind::kLinearAttention || rule.kind == RuleKind::kBlockPattern;
}

Result<std::optional<std::int64_t>> listed_layers(const ConfigRule& rule, const ModelSizes& sizes) {
  if (!rule.size) return std::optional(SW_TRY(layers_of(sizes)));
  const auto is_known = [&](const std::string& name) { return sizes.contains(name); };
  if (!std::ranges::all_of(rule.size->names(), is_known)) return std::optional<std::int64_t>();
  return std::optional(SW_TRY((rule.size->evaluate(Scope{sizes, {}}))));
}

bool is_of_a_list(std::string_view name) {
  return name.ends_with(".length") || name.ends_with(".side") || entry_number(name) ||
         name.find(".*.") != std::string_view::npos;
}

std::optional<std::size_t> entry_number(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 2 != name.size()) return std::nullopt;
  const char digit = name.back();
  if (digit < '0' || digit > '9') return std::nullopt;
  return static_cast<std::size_t>(digit - '0');
}

bool tells_experts(const ConfigRule& rule) {
  return rule.kind == RuleKind::kDenseFirst || rule.kind == RuleKind::kSparseStep ||
         rule.kind == RuleKind::kExpertRange || rule.kind == RuleKind::kExpertTypes ||
         rule.kind == RuleKind::kExpertNumbers;
}

bool tells_windows(const ConfigRule& rule) {
  return rule.kind == RuleKind::kWindowLayers || rule.kind == RuleKind::kWindowPattern;
}

ArgValue windows_argument(const ConfigRule& rule, const std::vector<std::int64_t>& windowed) {
  return rule.kind == RuleKind::kWindowPattern ? to_attention_pattern(windowed)
                                               : to_skip_frequency(windowed);
}

std::vector<std::int64_t> inverted(std::vector<std::int64_t> flags) {
  for (std::int64_t& flag : flags) flag = flag == 0 ? 1 : 0;
  return flags;
}

}  // namespace shardwright
