// SPDX-License-Identifier: Apache-2.0
#include "model/name_template.h"

#include <algorithm>
#include <cctype>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::size_t kMaxNameLength = 512;

bool is_literal_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

}  // namespace

Result<NameTemplate> NameTemplate::parse(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameLength) {
    return fail(Code::kMappingInvalid, "name '{}': found {} characters, expected 1 to {}",
                text.substr(0, kMaxNameLength), text.size(), kMaxNameLength);
  }
  NameTemplate result;
  result.text_ = text;
  Piece piece;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    const std::string_view literal = rest.substr(0, rest.find('{'));
    const auto other = std::ranges::find_if_not(literal, is_literal_char);
    if (other != literal.end()) {
      return fail(Code::kMappingInvalid,
                  "name '{}': found '{}', expected letters, digits, '.', '_', '-' or {{number}}",
                  text, *other);
    }
    piece.literal = literal;
    at += literal.size();
    if (at == text.size()) break;
    const std::size_t close = text.find('}', at);
    if (close == std::string_view::npos) {
      return fail(Code::kMappingInvalid, "name '{}': found '{{', expected a matching '}}'", text);
    }
    piece.number.push_back(SW_TRY(SizeExpr::parse(text.substr(at + 1, close - at - 1))));
    result.pieces_.push_back(std::move(piece));
    piece = Piece{};
    at = close;
  }
  result.pieces_.push_back(std::move(piece));
  return result;
}

Result<std::string> NameTemplate::render(const Scope& scope) const {
  std::string name;
  for (const Piece& piece : pieces_) {
    name += piece.literal;
    for (const SizeExpr& number : piece.number) {
      name += std::to_string(SW_TRY(number.evaluate(scope)));
    }
  }
  return name;
}

std::vector<std::string> NameTemplate::names() const {
  std::vector<std::string> names;
  for (const Piece& piece : pieces_) {
    for (const SizeExpr& number : piece.number) {
      for (std::string& name : number.names()) names.push_back(std::move(name));
    }
  }
  return names;
}

bool NameTemplate::uses(std::string_view name) const {
  const std::vector<std::string> all = names();
  return std::ranges::find(all, name) != all.end();
}

}  // namespace shardwright
