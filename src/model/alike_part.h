// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace shardwright {

/// A tensor that a part has whatever the model, if it has anything, by the names that it may have
/// behind the part's prefix, or behind a module more (`vision_model.`).
struct HeldTensor {
  std::vector<std::string> names;
};

/// A part of a model (a vision tower) whose tensors Megatron takes from HF as they are, whatever
/// they are called behind these prefixes.
struct AlikePart {
  std::string megatron;         ///< ends with a dot
  std::vector<std::string> hf;  ///< all spellings; the first is the one that is written
  bool optional = false;
  std::vector<HeldTensor> holds = {};
};

}  // namespace shardwright
