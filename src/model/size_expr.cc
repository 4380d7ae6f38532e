// SPDX-License-Identifier: Apache-2.0
#include "model/size_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::size_t kMaxExpressionLength = 256;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

/// Splits an expression into numbers, names and operators; spaces only separate.
Result<std::vector<std::string>> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ' ') {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (is_name_start(c)) {
      while (end < text.size() && is_name_char(text[end])) ++end;
    } else if (is_digit(c)) {
      while (end < text.size() && is_digit(text[end])) ++end;
    } else if (std::string_view("+-*/").find(c) == std::string_view::npos) {
      return fail(Code::kMappingInvalid,
                  "expression '{}': found '{}', expected names, numbers and + - * /", text, c);
    }
    tokens.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

}  // namespace

std::string layer_size_name(std::string_view size, std::int64_t layer) {
  return fmt::format("{}.{}", size, layer);
}

Result<std::int64_t> Scope::value_of(std::string_view name) const {
  for (const Binding& binding : bindings) {
    if (binding.name == name) return binding.value;
  }
  const auto found = sizes.find(name);
  if (found != sizes.end()) return found->second;
  const auto layer = std::ranges::find(bindings, "layer", &Binding::name);
  if (layer != bindings.end()) {
    const auto of_layer = sizes.find(layer_size_name(name, layer->value));
    if (of_layer != sizes.end()) return of_layer->second;
  }
  return fail(Code::kConfigMissing,
              "size '{}' has no value; give a config.json or arguments that name it", name);
}

Result<SizeExpr> SizeExpr::parse(std::string_view text) {
  if (text.size() > kMaxExpressionLength) {
    return fail(Code::kMappingInvalid, "expression: found {} characters, expected at most {}",
                text.size(), kMaxExpressionLength);
  }
  const std::vector<std::string> tokens = SW_TRY(tokens_of(text));
  if (tokens.size() % 2 == 0) {
    return fail(Code::kMappingInvalid,
                "expression '{}': found {} parts, expected operands joined by operators", text,
                tokens.size());
  }
  SizeExpr expr;
  expr.text_ = text;
  char op = '+';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    const bool is_operand = is_name_char(token[0]);
    if (is_operand != (i % 2 == 0)) {
      return fail(Code::kMappingInvalid, "expression '{}': found '{}', expected {}", text, token,
                  i % 2 == 0 ? "a name or a number" : "an operator");
    }
    if (!is_operand) {
      op = token[0];
      continue;
    }
    Factor factor;
    if (is_digit(token[0])) {
      std::int64_t number = 0;
      const char* end = token.data() + token.size();
      if (std::from_chars(token.data(), end, number).ec != std::errc{}) {
        return fail(Code::kMappingInvalid, "expression '{}': found '{}', expected a 64-bit number",
                    text, token);
      }
      factor.operand = number;
    } else {
      factor.operand = token;
    }
    if (op == '+' || op == '-') {
      expr.terms_.push_back(Term{op, {}});
    } else {
      factor.op = op;
    }
    expr.terms_.back().factors.push_back(std::move(factor));
  }
  return expr;
}

Result<std::int64_t> SizeExpr::product(const Term& term, const Scope& scope) const {
  std::int64_t value = 1;
  for (const Factor& factor : term.factors) {
    const auto* number = std::get_if<std::int64_t>(&factor.operand);
    const std::int64_t operand =
        number != nullptr ? *number : SW_TRY(scope.value_of(std::get<std::string>(factor.operand)));
    if (factor.op == '*') {
      const std::optional<std::int64_t> scaled = checked_mul(value, operand);
      if (!scaled) return fail(Code::kLimit, "size '{}': found a value beyond 64 bits", text_);
      value = *scaled;
    } else {
      if (operand <= 0 || value % operand != 0) {
        return fail(Code::kNotDivisible,
                    "size '{}': found {} / {}, expected a division without remainder; check these "
                    "numbers in config.json or the arguments",
                    text_, value, operand);
      }
      value /= operand;
    }
  }
  return value;
}

Result<std::int64_t> SizeExpr::evaluate(const Scope& scope) const {
  std::int64_t sum = 0;
  for (const Term& term : terms_) {
    const std::int64_t value = SW_TRY(product(term, scope));
    std::int64_t next = 0;
    const bool overflow = term.sign == '+' ? __builtin_add_overflow(sum, value, &next)
                                           : __builtin_sub_overflow(sum, value, &next);
    if (overflow) return fail(Code::kLimit, "size '{}': found a value beyond 64 bits", text_);
    sum = next;
  }
  if (sum < 0) {
    return fail(Code::kConfigMissing, "size '{}': found {}, expected zero or more", text_, sum);
  }
  return sum;
}

std::vector<std::string> SizeExpr::names() const {
  std::vector<std::string> names;
  for (const Term& term : terms_) {
    for (const Factor& factor : term.factors) {
      const auto* name = std::get_if<std::string>(&factor.operand);
      if (name != nullptr && std::ranges::find(names, *name) == names.end()) names.push_back(*name);
    }
  }
  return names;
}

}  // namespace shardwright
