// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

/// What a tensor is to the model.
enum class TensorRole : std::uint8_t {
  kWeight,
  kMaster,        ///< the weight as the optimizer keeps it
  kFirstMoment,   ///< Adam's mean of gradients
  kSecondMoment,  ///< Adam's mean of squared gradients
  kOtherState,    ///< of the optimizer: buckets, counters
};

/// Where a tensor belongs in a model, as far as its name says it.
struct TensorPlace {
  TensorRole role = TensorRole::kWeight;
  std::string component;              ///< `decoder`, `vision_model.decoder`, `embedding`
  std::optional<std::int64_t> layer;  ///< of the component's layers
  bool is_stacked = false;            ///< it has all of them, which its first axis counts
  std::string kind;                   ///< the rest: what its fellows in other layers share

  /// The layer, -1 outside of layers, -2 for all of them: as pages have it.
  [[nodiscard]] std::int64_t layer_number() const;
};

/// Of any name.
[[nodiscard]] TensorPlace place_of_tensor(std::string_view name);

}  // namespace shardwright
