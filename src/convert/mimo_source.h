// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/mapping_file.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Whether a catalog is a MIMO model's: some tensor lies in a modality's submodules.
[[nodiscard]] bool is_mimo(const Catalog& catalog);

/// A MIMO name without the `module.` segments that wrappers (DDP, Float16Module) add, each between
/// a component's root and the component: `language_model.module.x` is `language_model.x`.
[[nodiscard]] std::string without_wrappers(std::string_view name);

/// Gives the tensors and opaque entries of a MIMO catalog the names of an ordinary Megatron model,
/// by the routes of the family that has all of its components; `family` (may be empty) is the
/// caller's word which one that is. States of optimizers keep their names, RNG states are left
/// alone. Errors: kNoFamily where no family has a route for a name; kAmbiguousFamily where several
/// have and disagree; kDuplicateName where two names become one.
[[nodiscard]] Status to_standard_names(std::span<const Mapping> mappings, std::string_view family,
                                       Catalog& catalog);

}  // namespace shardwright
