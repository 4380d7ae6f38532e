// SPDX-License-Identifier: Apache-2.0
#include "layout/component_spec.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kForm = "name=tp=N[,pp=N,dp=N,cp=N,ep=N,etp=N,rank_offset=N]";

struct Key {
  std::string_view name;
  std::optional<std::int64_t> ComponentSpec::* member;
};

constexpr std::array kKeys = {
    Key{"tp", &ComponentSpec::tensor},
    Key{"pp", &ComponentSpec::pipeline},
    Key{"dp", &ComponentSpec::data},
    Key{"cp", &ComponentSpec::context},
    Key{"ep", &ComponentSpec::expert},
    Key{"etp", &ComponentSpec::expert_tensor},
    Key{"rank_offset", &ComponentSpec::rank_offset},
};

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

// As Python's int() reads it, except that digits are those of ASCII: one underscore may stand
// between two digits.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_') {
      return std::nullopt;
    }
  }
  if (digits.empty() || digits.front() == '-') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return is_negative ? -number : number;
}

Status read_token(std::string_view text, std::string_view token, ComponentSpec& spec) {
  const std::size_t equals = token.find('=');
  if (equals == std::string_view::npos) {
    return fail(Code::kUsage, "'{}': found '{}', expected key=value", text, token);
  }
  const std::string_view name = stripped(token.substr(0, equals));
  const std::string_view value = stripped(token.substr(equals + 1));
  const auto key = std::ranges::find(kKeys, name, &Key::name);
  if (key == kKeys.end()) {
    return fail(Code::kUsage,
                "'{}': found the key '{}', expected tp, pp, dp, cp, ep, etp or rank_offset", text,
                name);
  }
  const std::optional<std::int64_t> number = parse_integer(value);
  if (!number) {
    return fail(Code::kUsage, "'{}': found '{}' for {}, expected a whole number", text, value,
                name);
  }
  if (spec.*key->member) {
    return fail(Code::kUsage, "'{}': {} is given twice; give it once", text, name);
  }
  spec.*key->member = number;
  return {};
}

}  // namespace

Result<ComponentSpec> parse_component(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return fail(Code::kUsage, "found '{}', expected {}", text, kForm);
  }
  ComponentSpec spec;
  spec.name = stripped(text.substr(0, equals));
  if (spec.name.empty()) {
    return fail(Code::kUsage, "'{}' has no name; write it like {}", text, kForm);
  }
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view token = stripped(rest.substr(0, comma));
    // Megatron-Bridge takes empty ones too.
    if (!token.empty()) SW_TRY(read_token(text, token, spec));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return spec;
}

Result<std::vector<ComponentSpec>> parse_components(std::span<const std::string> texts) {
  std::vector<ComponentSpec> specs;
  for (const std::string& text : texts) {
    ComponentSpec spec = SW_TRY(parse_component(text));
    if (std::ranges::find(specs, spec.name, &ComponentSpec::name) != specs.end()) {
      return fail(Code::kUsage, "'{}' is given twice; give each component once", spec.name);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace shardwright
