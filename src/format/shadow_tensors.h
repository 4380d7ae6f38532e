// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "shardwright/catalog.h"

namespace shardwright {

/// `__shadow_3__decoder.…`: what rank 3 keeps of a tensor, beside the tensor itself, so that it can
/// load from a file of its own (Megatron-LM PRs 4628 and 5556, "replicate local").
struct ShadowName {
  std::string_view tensor;  ///< a part of the parsed name
  std::string_view rank;    ///< decimal digits
};

[[nodiscard]] std::optional<ShadowName> parse_shadow_name(std::string_view name);

/// Makes the chunks of shadows replicas of the tensors that they repeat. A shadow has the shape of
/// the whole tensor but only some of its chunks, so by itself it would be a tensor with holes. One
/// that repeats no chunk of a tensor of this catalog stays what it is, holes included.
void fold_shadows(Catalog& catalog);

}  // namespace shardwright
