// SPDX-License-Identifier: Apache-2.0
#include "layout/hybrid_stages.h"

#include <utility>

namespace shardwright {

std::string_view decoder_pattern(std::string_view pattern) {
  return pattern.substr(0, pattern.find('/'));
}

bool tells_stages(std::string_view pattern) { return decoder_pattern(pattern).contains('|'); }

std::string with_stages(std::string_view pattern, std::int64_t layers, const PipelineSplit& split) {
  const std::string_view decoder = decoder_pattern(pattern);
  std::string kinds(decoder);
  std::erase(kinds, '|');
  if (static_cast<std::int64_t>(kinds.size()) != layers) return std::string(pattern);
  const auto place_of = [&](std::int64_t layer) {
    return std::pair(split.virtual_stage_of(layer), split.stage_of(layer));
  };
  std::string staged;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (layer > 0 && place_of(layer) != place_of(layer - 1)) staged += '|';
    staged += kinds[static_cast<std::size_t>(layer)];
  }
  return staged + std::string(pattern.substr(decoder.size()));
}

}  // namespace shardwright
