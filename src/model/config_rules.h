// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/mapping_file.h"

namespace shardwright {

// What both directions between config.json and Megatron's arguments ask of values and rules.

/// The first of these names that is set; a leading `!` does not count. Null if none is.
[[nodiscard]] const ArgValue* first_set(const Arguments& values,
                                        std::span<const std::string> names);
/// The other truth value; anything else as it is.
[[nodiscard]] ArgValue inverse(const ArgValue& value);
[[nodiscard]] bool conditions_hold(const ConfigRule& rule, const Arguments& hf);

/// The last part of a dotted path.
[[nodiscard]] std::string_view leaf_of(std::string_view path);
/// The value of a key in the mapping's section of a config.json; null where it is not set.
[[nodiscard]] const ArgValue* setting_of(const Mapping& mapping, const Arguments& hf,
                                         std::string_view key);

/// A number without fraction that a double holds exactly.
[[nodiscard]] std::optional<std::int64_t> whole(const ArgValue& value);
[[nodiscard]] std::int64_t whole_or(const ArgValue* value, std::int64_t otherwise);
/// Error: kConfigMissing for what is no number above 0, with the name of the setting.
[[nodiscard]] Result<double> checked_positive(std::string_view name, const ArgValue& value);
/// A number as a configuration would write it: whole if rounding is all that keeps it from being
/// so.
[[nodiscard]] ArgValue plain_number(double value);

/// Whether the rule lists what every layer is.
[[nodiscard]] bool lists_kinds(const ConfigRule& rule);
/// How many layers such a rule lists; nothing where the model has none of that sort. Errors: as
/// layers_of.
[[nodiscard]] Result<std::optional<std::int64_t>> listed_layers(const ConfigRule& rule,
                                                                const ModelSizes& sizes);
/// Whether a name asks for the length of a list, the side of a square or an entry, which are not
/// written: the list is.
[[nodiscard]] bool is_of_a_list(std::string_view name);

/// Which entry of a list a name asks for (`moe_intermediate_size.1`: 1); nullopt for other names.
[[nodiscard]] std::optional<std::size_t> entry_number(std::string_view name);

/// The number of layers, for lists with an entry per layer. Errors: kLimit, kConfigMissing.
[[nodiscard]] Result<std::int64_t> layers_of(const ModelSizes& sizes);
/// Whether a rule says which layers have a sliding window.
[[nodiscard]] bool tells_windows(const ConfigRule& rule);

/// Megatron's argument for the windows, as the rule's kind has it.
[[nodiscard]] ArgValue windows_argument(const ConfigRule& rule,
                                        const std::vector<std::int64_t>& windowed);

/// Whether the rule is about the layers that have experts.
[[nodiscard]] bool tells_experts(const ConfigRule& rule);
/// 0 for 1 and 1 for 0.
[[nodiscard]] std::vector<std::int64_t> inverted(std::vector<std::int64_t> flags);

}  // namespace shardwright
