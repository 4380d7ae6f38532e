// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// Rows of one tensor of a Mamba mixer or a gated delta net that torch_dist has as a tensor of its
/// own, because each is cut for itself.
struct MixerPart {
  std::string_view suffix;  ///< behind the name in torch_dist
  std::int64_t rows = 0;
};

using TensorsByName = std::unordered_map<std::string_view, const TensorDesc*>;

/// The parts of a mixer's input projection or convolution, in their order; none for other tensors.
/// `tensors` are those of one state dict: the mixer's other tensors show how wide the parts are.
[[nodiscard]] std::vector<MixerPart> mixer_parts(const TensorDesc& tensor,
                                                 const TensorsByName& tensors);

/// The name of torch_dist without the part's, and the part's place in the whole; -1 for a tensor
/// that is whole.
[[nodiscard]] std::pair<std::string_view, int> split_mixer_part(std::string_view name);

/// The suffix of a part that has to be beside those with these places, and is not; empty where all
/// are there. `whole`: the name without the part's.
[[nodiscard]] std::string_view lacking_mixer_part(std::string_view whole,
                                                  const std::vector<int>& places);

}  // namespace shardwright
