// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// An entry of the optimizer of a MIMO run's component: of
/// `mimo.images.optimizer.mimo.images.1.param_groups/shard_0_1` the component is `images`, the part
/// 1 (experts, which have an optimizer of their own where they are sharded apart; 0 without a
/// number) and the content `param_groups`. Borrows the name.
/// Source: MimoOptimizer.sharded_state_dict in megatron/core/models/mimo/optimizer.py.
struct ComponentEntry {
  std::string_view component;
  std::int64_t part = 0;
  std::string_view content;
};

/// nullopt for names of other things.
[[nodiscard]] std::optional<ComponentEntry> split_component_entry(std::string_view name);

/// The parameter groups of each component's optimizer as those of one: `optimizer` of a common
/// state, whose bytes are returned. Megatron tells groups apart by what they say of themselves, so
/// what components have alike becomes one group. Error: kOptimizerMismatch where they disagree
/// about a group or about the step, with both; kStateUnreadable.
[[nodiscard]] Result<std::string> join_component_groups(const std::string& common_state,
                                                        const Catalog& catalog, SourceFiles& files);

/// What a MIMO run has of the optimizer that a common state describes.
struct ComponentGroups {
  std::string common_state;                                  ///< without it
  std::vector<std::pair<std::string, std::string>> entries;  ///< name and bytes
  bool drops_loss_scale = false;                             ///< there was one: it is left behind
};

/// The reverse. Every component gets all groups: Megatron aligns them over the ranks of a run, so
/// an optimizer asks for those that it has no parameters for too. Error: kOptimizerUnsupported
/// where the state describes no optimizer. Source: _get_param_groups in
/// megatron/core/optimizer/__init__.py.
[[nodiscard]] Result<ComponentGroups> share_component_groups(
    const std::string& common_state, std::span<const std::string> components);

}  // namespace shardwright
