// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "shardwright/tensor.h"

namespace shardwright {

/// A type of a safetensors header. `rank` orders types as the reference writer does.
struct SafetensorsType {
  std::string_view name;
  DType dtype = DType::kU8;
  int rank = 0;
  int values_per_element = 1;  ///< 2 for F4: the header's last axis counts half bytes
};

[[nodiscard]] std::optional<SafetensorsType> safetensors_type(std::string_view name);
[[nodiscard]] std::optional<SafetensorsType> safetensors_type(DType dtype);

}  // namespace shardwright
