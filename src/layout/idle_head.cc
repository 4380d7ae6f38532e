// SPDX-License-Identifier: Apache-2.0
#include "layout/idle_head.h"

#include <algorithm>
#include <string_view>

namespace shardwright {

bool has_idle_head(std::span<const TensorDesc> tensors) {
  const auto holds = [&](std::string_view end) {
    return std::ranges::any_of(
        tensors, [&](const TensorDesc& tensor) { return tensor.name.ends_with(end); });
  };
  return holds("output_layer.weight") && holds("embedding.word_embeddings.weight");
}

}  // namespace shardwright
