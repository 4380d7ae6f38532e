// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/source_files.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The run's arguments out of the entry `args` of an fsdp_dtensor checkpoint, whose state is stored
/// entry by entry; none without it. Errors: those of the archive reader.
[[nodiscard]] Result<Arguments> read_fsdp_arguments(const Catalog& catalog, SourceFiles& files);

/// Bytes of a common.pt with what the entries of an fsdp_dtensor checkpoint say: arguments,
/// iteration, scheduler and, where asked for, the optimizer's parameter groups, each of which
/// stands for the parameters that have the same settings and has the optimizer's step, if that is
/// known. Empty without `args`. Errors: kLimit,
/// kStateUnreadable for an entry that is no plain value, and those of the archive reader.
[[nodiscard]] Result<std::string> make_common_state(const Catalog& catalog, SourceFiles& files,
                                                    bool with_optimizer,
                                                    std::optional<std::int64_t> step = {});

/// An opaque entry of a target: name, place in the nested state dict, bytes.
struct StateEntry {
  std::string name;
  std::vector<std::string> path;
  std::string bytes;
};

/// A parameter as its settings are found: has weight decay or not, is an expert's or not.
struct GroupedParameter {
  std::string name;  ///< `optimizer.param_to_group_meta.….`, without the setting
  bool has_decay = true;
  bool is_expert = false;
};

/// The way back: the entries of an fsdp_dtensor checkpoint out of a common.pt. Parameters get the
/// settings of the group that fits them; none where the state has no groups. Errors: as above, and
/// kStateUnreadable for groups of which none fits.
struct SplitState {
  std::vector<StateEntry> entries;
  std::int64_t step = 0;          ///< of the optimizer: its groups' own count, else the iteration
  bool drops_loss_scale = false;  ///< the state had one, for which there is no entry
};
[[nodiscard]] Result<SplitState> split_common_state(
    const std::string& common_state, const std::vector<GroupedParameter>& parameters);

}  // namespace shardwright
