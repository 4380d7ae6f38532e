// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "layout/texts_english.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// The name of a text in the catalogues. One that is in none does not compile.
class TextKey {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): phrase("none") is what it is for
  consteval TextKey(const char* name) : key_(name) {
    if (std::ranges::find(kEnglishTexts, key_, &Text::key) == kEnglishTexts.end()) {
      throw "no such text";
    }
  }
  /// REQUIRES: the catalogues have it.
  [[nodiscard]] static TextKey named(std::string_view name) { return {name, 0}; }

  [[nodiscard]] std::string_view key() const { return key_; }

 private:
  TextKey(std::string_view name, int) : key_(name) {}

  std::string_view key_;
};

/// The value of a named parameter; the languages differ only where it is words.
struct Parameter {
  const char* name;
  Phrase value;

  Parameter(const char* n, Phrase v) : name(n), value(std::move(v)) {}
  Parameter(const char* n, std::string_view v) : name(n), value{std::string(v), std::string(v)} {}
  Parameter(const char* n, std::integral auto number)
      : Parameter(n, std::string_view(std::to_string(number))) {}
};

/// The text in both languages. REQUIRES: a parameter for each name in it.
[[nodiscard]] Phrase phrase(TextKey key, std::initializer_list<Parameter> parameters = {});

/// In the language that errors speak now.
[[nodiscard]] std::string said(const Phrase& phrase);

/// The same keys as kEnglishTexts, in the same order.
[[nodiscard]] std::span<const Text> chinese_texts();

}  // namespace shardwright
