// SPDX-License-Identifier: Apache-2.0
#include "model/built_in_text.h"

#include <string>

namespace shardwright {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

std::vector<MappingText> mapping_texts(std::span<const BuiltInText> texts) {
  std::vector<MappingText> result;
  result.reserve(texts.size());
  for (const BuiltInText& text : texts) {
    result.push_back({std::string(text.name),
                      text.json,
                      {std::string(text.family), lines_of(text.architectures),
                       lines_of(text.model_types), lines_of(text.extends)}});
  }
  return result;
}

}  // namespace shardwright
