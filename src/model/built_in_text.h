// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/mapping_heading.h"

namespace shardwright {

/// A file as it is built in. Lists are lines.
struct BuiltInText {
  std::string_view name;
  const char* json;  ///< too long for clang to measure while it compiles
  std::string_view family;
  std::string_view architectures;
  std::string_view model_types;
  std::string_view extends;
};

/// The same texts with their headings. Borrows.
[[nodiscard]] std::vector<MappingText> mapping_texts(std::span<const BuiltInText> texts);

}  // namespace shardwright
