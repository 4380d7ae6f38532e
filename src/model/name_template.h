// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/size_expr.h"

namespace shardwright {

/// A tensor name with numbers left open: `model.layers.{layers + mtp}.enorm.weight`. Names are only
/// ever generated from it, never parsed back, so two templates that look alike can't be confused.
class NameTemplate {
 public:
  /// Error: kMappingInvalid.
  [[nodiscard]] static Result<NameTemplate> parse(std::string_view text);
  [[nodiscard]] Result<std::string> render(const Scope& scope) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  /// The names that the braces use.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool uses(std::string_view name) const;

 private:
  struct Piece {
    std::string literal;           // before the number
    std::vector<SizeExpr> number;  // none in the last piece
  };

  std::string text_;
  std::vector<Piece> pieces_;
};

}  // namespace shardwright
