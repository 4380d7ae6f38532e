// SPDX-License-Identifier: Apache-2.0
#include "cli/locale_language.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace shardwright::cli {

Language language_of_locale(std::string_view locale) {
  constexpr std::array<std::string_view, 6> kSimplified = {"zh",      "zh_CN",      "zh_SG",
                                                           "zh_Hans", "zh_Hans_CN", "zh_Hans_SG"};
  const std::string_view name = locale.substr(0, locale.find_first_of(".@"));
  const bool is_ours = std::ranges::find(kSimplified, name) != kSimplified.end();
  return is_ours ? Language::kChinese : Language::kEnglish;
}

Language language_from_environment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return language_of_locale(value);
  }
  return Language::kEnglish;
}

}  // namespace shardwright::cli
