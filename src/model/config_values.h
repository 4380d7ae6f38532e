// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace shardwright {

/// Sizes together with how sure they are.
struct SizesWithDoubts {
  ModelSizes sizes;
  std::vector<std::string> guessed;  ///< size names that came from a default or a padded number
};

/// The values as a mapping with a section for its language model sees them: what the section lacks
/// is taken from the top level, where older files have it.
[[nodiscard]] Arguments in_section(const Arguments& values, const std::string& section);

/// REQUIRES: `values` are of the side that `from_args` says.
[[nodiscard]] Result<SizesWithDoubts> find_sizes(const Mapping& mapping, const Arguments& values,
                                                 bool from_args);

/// An argument name of a mapping file; a leading `!` means that the flag is stored negated.
struct FlagName {
  std::string_view name;
  bool negated = false;
};
[[nodiscard]] FlagName flag_name(std::string_view name);

/// The dotted paths as a config.json: sorted, indented by two, rotary settings in the spelling that
/// every transformers release reads.
[[nodiscard]] std::string hf_config_text(const Arguments& values,
                                         const std::vector<std::string>& architectures);

}  // namespace shardwright
