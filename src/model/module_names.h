// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

struct Mapping;

/// Words of a tensor's name in the files of a model, and what transformers' modules call them.
struct ModuleWords {
  std::vector<std::string> files;  ///< `*` is any word; the first may be `^`, the name's beginning
  std::vector<std::string> modules;  ///< has as many `*`

  [[nodiscard]] bool is_of_beginning() const;
  friend bool operator==(const ModuleWords&, const ModuleWords&) = default;
};

/// From `mlp.shared_mlp` and `mlp.shared_experts`. Error: kMappingInvalid for empty words, another
/// count of `*`, and a `^` that is not the first of `files`.
[[nodiscard]] Result<ModuleWords> parse_module_words(std::string_view files,
                                                     std::string_view modules);

/// The name with each run of words that an entry has replaced by that entry's, from left to right
/// and once; of several that fit at a place the one with the most words counts, then the first.
[[nodiscard]] std::string with_module_words(const std::vector<ModuleWords>& entries,
                                            std::string_view name);

/// What transformers' modules call a tensor of the language model, whatever files of its family do:
/// those of models that see have often older names, and others names of their trainers. PEFT
/// knows modules only. Names of towers stay.
[[nodiscard]] std::string module_name(const Mapping& family, std::string_view whole);

}  // namespace shardwright
