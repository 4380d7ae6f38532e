// SPDX-License-Identifier: Apache-2.0
#include "cli/code_label.h"

#include <fmt/format.h>

namespace shardwright::cli {

std::string code_label(std::string_view kind, Code code, Language language) {
  const std::string name = code_name(code);
  const std::string label = fmt::format("{}[{}]", kind, name);
  return language == Language::kEnglish ? label : label + " " + code_title(name).in(language);
}

}  // namespace shardwright::cli
