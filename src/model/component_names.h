// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/mapping_file.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// What the names of a MIMO model's modalities begin with.
inline constexpr std::string_view kModalitySubmodules = "modality_submodules.";
/// What a wrapper (DDP, Float16Module) adds behind a component's root.
inline constexpr std::string_view kMimoWrapper = "module.";
/// What the names of the optimizers' states begin with.
inline constexpr std::string_view kMimoStates = "mimo.";

/// Whether tensors are called as a MIMO model's are, each behind its component's root.
[[nodiscard]] bool has_component_names(const Catalog& catalog);

/// The component that an entry of its optimizer belongs to: `language` of
/// `mimo.language.optimizer.…`; empty for names of other things. Borrows the name.
[[nodiscard]] std::string_view component_of_state(std::string_view name);

/// The component that a tensor of a MIMO model belongs to, by its name: `language` or the
/// modality's name; empty for names of other things. Borrows the name.
[[nodiscard]] std::string_view component_of_tensor(std::string_view name);

/// Where the names of a tensor's component begin: `modality_submodules.images.`; empty for names of
/// other things. Borrows the name.
[[nodiscard]] std::string_view root_of_component(std::string_view name);

/// A MIMO name without the `module.` segments that wrappers (DDP, Float16Module) add, each between
/// a component's root and the component: `language_model.module.x` is `language_model.x`.
[[nodiscard]] std::string without_wrappers(std::string_view name);

/// What wrappers add to the names of each component, by its root: `module.` by `language_model.`.
using Wrappers = std::map<std::string, std::string, std::less<>>;

/// The families that have routes for all components of a MIMO catalog, one of each way to name its
/// tensors; `family` (may be empty) is the caller's word which one it is. None where no tensor is a
/// component's. Error: kNoFamily with the name that no family has a route for.
[[nodiscard]] Result<std::vector<const Mapping*>> families_with_routes(
    std::span<const Mapping> mappings, std::string_view family, const Catalog& catalog);

/// Gives the tensors and opaque entries of a MIMO catalog the names of an ordinary Megatron model,
/// and says which wrappers they had. The states of a component's optimizer
/// (`mimo.language.optimizer.state.exp_avg.…`) become those of one optimizer; its other entries and
/// RNG states are left alone. Errors: kNoFamily for a name without a route; kDuplicateName where
/// two names become one; kMetadataCorrupt for names of one component with and without a wrapper,
/// and for a state in another component's optimizer.
[[nodiscard]] Result<Wrappers> to_standard_names(std::span<const ComponentRoute> routes,
                                                 Catalog& catalog);

/// A MIMO name with the wrappers that its component has. Names without a root stay.
[[nodiscard]] std::string with_wrappers(const Wrappers& wrappers, std::string_view name);

}  // namespace shardwright
