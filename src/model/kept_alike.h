// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model/instances.h"
#include "model/mapping_file.h"

namespace shardwright {

/// The Megatron name of an HF tensor in a part that Megatron takes over as it is; nothing for
/// others.
[[nodiscard]] std::optional<std::string> alike_in_megatron(const Mapping& mapping,
                                                           std::string_view hf);

/// The other way: the name that `wanted` (may be null) has, else the first spelling's.
[[nodiscard]] std::optional<std::string> alike_in_hf(const Mapping& mapping,
                                                     std::string_view megatron,
                                                     const TensorIndex* wanted);

/// What the names begin with of parts that a model must have and of which it has nothing; and what
/// such parts show that they have lost (lost_siblings(), lost_weights()).
[[nodiscard]] std::vector<std::string> lacking_parts(const Mapping& mapping, Side side,
                                                     const TensorIndex& present);

}  // namespace shardwright
