// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/prepared_conversion.h"

namespace shardwright::cli {

/// The names in fewer lines, exactly: those that differ only in numbers become one pattern,
/// `layers.{0..31}.w`, where they are all combinations of these, and are listed one by one where
/// they are not. A number is a part between dots that is all digits, or the digits at the end
/// (`experts.weight12`); `linear_fc1.weight` has none. Repeated names count once.
[[nodiscard]] std::vector<std::string> name_patterns(const std::vector<std::string>& names);

/// Renames of one kind: their source and target names as patterns.
struct RenamePattern {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

/// All renames, those of the same shapes together, in the order of the first of each kind.
[[nodiscard]] std::vector<RenamePattern> rename_patterns(
    const std::vector<const RenamedTensor*>& renames);

}  // namespace shardwright::cli
