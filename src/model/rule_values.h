// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/mapping_file.h"

namespace shardwright {

/// The first of these that is set and not None; a leading `!` of a name does not count.
[[nodiscard]] const ArgValue* first_set(const Arguments& values,
                                        std::span<const std::string> names);

/// The opposite flag; what is no flag stays.
[[nodiscard]] ArgValue inverse(const ArgValue& value);

/// Whether config.json has the values that a rule's `if` asks for.
[[nodiscard]] bool conditions_hold(const ConfigRule& rule, const Arguments& hf);

/// A whole number, also one that a file spells `2.0`.
[[nodiscard]] std::optional<std::int64_t> whole(const ArgValue& value);
[[nodiscard]] std::int64_t whole_or(const ArgValue* value, std::int64_t otherwise);
[[nodiscard]] std::optional<double> number_in(const ArgValue& value);

/// A number as a configuration would write it: whole if rounding is all that keeps it from being
/// so.
[[nodiscard]] ArgValue plain_number(double value);

/// Error: kConfigMissing for anything but a finite number above 0.
[[nodiscard]] Result<double> checked_positive(std::string_view name, const ArgValue& value);

/// Error: kLimit beyond what any list of layers may hold.
[[nodiscard]] Result<std::int64_t> layers_of(const ModelSizes& sizes);

/// Whether a rule is about the layers that have experts.
[[nodiscard]] bool tells_experts(const ConfigRule& rule);

/// 0 for 1 and 1 for 0.
[[nodiscard]] std::vector<std::int64_t> inverted(std::vector<std::int64_t> flags);

/// Whether a size is counted from the tensors.
[[nodiscard]] bool is_observed(const Mapping& mapping, std::string_view size);

/// How many layers a rule lists; nothing where the model has none of that sort.
[[nodiscard]] Result<std::optional<std::int64_t>> listed_layers(const ConfigRule& rule,
                                                                const ModelSizes& sizes);

/// Whether a name stands for the length of a list. Lengths are not written: lists are.
[[nodiscard]] bool is_length(std::string_view name);

/// Whether a rule lists the kind of every layer.
[[nodiscard]] bool lists_kinds(const ConfigRule& rule);

}  // namespace shardwright
