// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// The value that a loop variable of a mapping (`layer`, `expert`) has right now.
struct Binding {
  std::string name;
  std::int64_t value = 0;
};

/// The name of a size that each layer has one of.
[[nodiscard]] std::string layer_size_name(std::string_view size, std::int64_t layer);

/// Where the names of an expression get their values: loop variables first, then sizes, those of
/// the layer too. Borrows both.
struct Scope {
  const ModelSizes& sizes;
  std::span<const Binding> bindings;

  /// Error: kConfigMissing when neither knows the name.
  [[nodiscard]] Result<std::int64_t> value_of(std::string_view name) const;
};

/// Integer arithmetic over named sizes, as mapping files write it: `heads / groups * head_dim`.
/// Operators are + - * / with the usual precedence and no parentheses; a division must be exact,
/// because a rounded extent would misplace every row that follows.
class SizeExpr {
 public:
  /// Error: kMappingInvalid.
  [[nodiscard]] static Result<SizeExpr> parse(std::string_view text);
  /// Errors: kConfigMissing (a name without value, a negative result), kNotDivisible, kLimit
  /// (overflow).
  [[nodiscard]] Result<std::int64_t> evaluate(const Scope& scope) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Factor {
    char op = '*';  // '*' or '/'
    std::variant<std::int64_t, std::string> operand;
  };
  struct Term {
    char sign = '+';
    std::vector<Factor> factors;
  };
  [[nodiscard]] Result<std::int64_t> product(const Term& term, const Scope& scope) const;

  std::string text_;
  std::vector<Term> terms_;
};

}  // namespace shardwright
