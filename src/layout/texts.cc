// SPDX-License-Identifier: Apache-2.0
#include "layout/texts.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include "base/translated.h"

namespace shardwright {
namespace {

std::string filled(std::span<const Text> catalogue, TextKey key,
                   std::span<const Parameter> parameters, Language language) {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  for (const Parameter& each : parameters) {
    values.push_back(fmt::arg(each.name, each.value.in(language)));
  }
  return fmt::vformat(std::ranges::find(catalogue, key.key(), &Text::key)->text, values);
}

}  // namespace

Phrase phrase(TextKey key, std::initializer_list<Parameter> parameters) {
  const std::span<const Parameter> values(parameters.begin(), parameters.size());
  return {filled(kEnglishTexts, key, values, Language::kEnglish),
          filled(chinese_texts(), key, values, Language::kChinese)};
}

std::string said(const Phrase& phrase) {
  return phrase.in(speaks_english() ? Language::kEnglish : Language::kChinese);
}

}  // namespace shardwright
