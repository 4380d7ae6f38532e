// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// Where a component of a multimodal model is: in an ordinary Megatron model and in a MIMO one.
/// Source: mimo_source_prefixes and modality_keys of Megatron-Bridge's providers.
struct ComponentRoute {
  std::string name;    ///< `images`: what --component calls it
  std::string prefix;  ///< of its tensors in an ordinary model: `vision_model.`
  std::string path;    ///< in a MIMO model: `modality_submodules.images.encoders.qwen_visual.`

  friend bool operator==(const ComponentRoute&, const ComponentRoute&) = default;
};

/// Names are made of words between dots; both texts end with one, no route's lies inside another's,
/// and one of the routes is called `language`. Error: kMappingInvalid with the route.
[[nodiscard]] Status check_routes(std::span<const ComponentRoute> routes);

/// The route that an ordinary Megatron model's tensor belongs to; null if there is none.
[[nodiscard]] const ComponentRoute* route_of(std::span<const ComponentRoute> routes,
                                             std::string_view name);

/// An ordinary Megatron name as a MIMO model has it. REQUIRES: route_of() finds one.
[[nodiscard]] std::string mimo_name(std::span<const ComponentRoute> routes, std::string_view name);

/// The reverse: a MIMO model's name, without its wrappers' segments, as an ordinary model has it;
/// empty if no route leads there.
[[nodiscard]] std::string standard_name(std::span<const ComponentRoute> routes,
                                        std::string_view name);

}  // namespace shardwright
