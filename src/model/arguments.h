// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardwright {

/// A plain value of Megatron's argparse Namespace, of Bridge's `run_config.yaml` or of config.json:
/// None, flag, whole number, number, text, or a list of whole numbers (`moe_layer_freq`) or of
/// texts
/// (`layer_types`).
using ArgValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>>;

/// Megatron's arguments by name, or the leaves of a config.json by dotted path.
using Arguments = std::map<std::string, ArgValue, std::less<>>;

/// Arguments in the order in which they should be written.
using ArgumentList = std::vector<std::pair<std::string, ArgValue>>;

/// As Python would print it.
[[nodiscard]] std::string to_string(const ArgValue& value);

/// A number, whole or not; nothing for a flag.
[[nodiscard]] std::optional<double> as_number(const ArgValue& value);

/// Equal as Python compares: 1 == 1.0, but a flag is no number here.
[[nodiscard]] bool same_value(const ArgValue& a, const ArgValue& b);

/// The value, or nullptr where it is missing or None.
[[nodiscard]] const ArgValue* find_set(const Arguments& values, std::string_view name);

/// The flag; nothing where it is missing, None or no flag.
[[nodiscard]] std::optional<bool> find_flag(const Arguments& values, std::string_view name);

/// Whether it is a flag and true.
[[nodiscard]] bool is_true(const Arguments& values, std::string_view name);

/// A name and its value, or nullptr.
struct SaidArgument {
  std::string_view name;
  const ArgValue* value = nullptr;
};

/// Of names with bars between them (`a|b`) the first that is set; of none the first name. Borrows
/// both.
[[nodiscard]] SaidArgument first_said(const Arguments& values, std::string_view names);

}  // namespace shardwright
