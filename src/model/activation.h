// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/arguments.h"
#include "model/mapping_file.h"

namespace shardwright {

/// What an MLP applies to its first linear, or to one half of it, by Hugging Face's word: `silu`,
/// `gelu` in any of its roundings, `relu`, `relu2`, `quick_gelu`. By a training run's arguments:
/// Megatron-LM's flags, the function of a Megatron-Core configuration, NeMo 1's `activation`.
/// nullopt where they don't say it, or name another.
[[nodiscard]] std::optional<std::string_view> activation_of_run(const Arguments& args);

/// The same by the values of a config.json of the family.
[[nodiscard]] std::optional<std::string_view> activation_of_config(const Mapping& mapping,
                                                                   const Arguments& hf);

/// Flags of Megatron-LM, its forks and Megatron-Core's configuration that say of an MLP that it is
/// gated.
inline constexpr std::array<std::string_view, 5> kGateFlags = {"swiglu", "gated_linear_unit",
                                                               "quick_geglu", "geglu", "reglu"};

/// Whether a run says that its MLPs are gated; nullopt where it has none of the flags.
[[nodiscard]] std::optional<bool> states_gate(const Arguments& args);

}  // namespace shardwright
