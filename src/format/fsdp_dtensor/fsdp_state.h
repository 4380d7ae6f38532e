// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/source_files.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The run's arguments out of the entry `args` of an fsdp_dtensor checkpoint, whose state is stored
/// entry by entry; none without it. Errors: those of the archive reader.
[[nodiscard]] Result<Arguments> read_fsdp_arguments(const Catalog& catalog, SourceFiles& files);

/// The entry `iteration` of such a checkpoint; none without it. Errors: those of the archive
/// reader.
[[nodiscard]] Result<std::optional<std::int64_t>> read_fsdp_iteration(const Catalog& catalog,
                                                                      SourceFiles& files);

/// Whether an object of that name is a part of the training state but for the optimizer: arguments,
/// iteration, scheduler.
[[nodiscard]] bool is_fsdp_state_entry(std::string_view name);

/// kStateUnreadable: a tensor with optimizer states whose parameter has no settings.
[[nodiscard]] std::unexpected<Error> lacks_settings(std::string_view tensor,
                                                    std::string_view parameter);

/// Whether each parameter with optimizer states has settings. Error: lacks_settings().
[[nodiscard]] Status check_fsdp_settings(const Catalog& catalog);

/// Bytes of a common.pt with what the entries of an fsdp_dtensor checkpoint say: arguments,
/// iteration, scheduler and, where asked for, the optimizer's parameter groups, each of which
/// stands for the parameters that have the same settings and has the most steps that one of them
/// counts, or the iteration where they have Adam's states and count none. Empty without `args`.
/// Errors: kLimit, kStateUnreadable for an entry that is no plain value and for steps that nothing
/// tells, and those of the archive reader.
[[nodiscard]] Result<std::string> make_common_state(const Catalog& catalog, SourceFiles& files,
                                                    bool with_optimizer,
                                                    std::vector<std::string>& notes);

/// What to say of a common state where two parameter groups are for the same kind of parameters and
/// have different settings, so that only a run's own tell whose they are; empty where none are.
/// Errors: those of the archive reader.
[[nodiscard]] Result<std::string> note_on_like_groups(const std::string& common_state);

/// An opaque entry of a target: name, place in the nested state dict, bytes.
struct StateEntry {
  std::string name;
  std::vector<std::string> path;
  std::string bytes;
};

/// A parameter as its settings are found.
struct GroupedParameter {
  std::string name;    ///< `optimizer.param_to_group_meta.….`, without the setting
  std::string source;  ///< the same by the names of torch_dist (fsdp_settings_of)
  TensorDesc desc;     ///< with Megatron's own name; of one expert, and of a gate's half
};

/// Where a setting lies in the nested state dict.
[[nodiscard]] std::vector<std::string> path_of_setting(std::string_view parameter,
                                                       std::string_view key);

/// The way back: the entries of an fsdp_dtensor checkpoint out of a common.pt. Parameters get the
/// settings of the group that Megatron puts them into; none where the state has no groups. Errors:
/// as above, and those of share_out.
struct SplitState {
  std::vector<StateEntry> entries;
  std::int64_t step = 0;  ///< of the optimizer: its groups' own count, else the iteration
  std::map<std::string, std::int64_t, std::less<>> steps;  ///< by parameter, of its own group
  bool steps_differ = false;      ///< the groups' counts; `step` is the most
  bool drops_loss_scale = false;  ///< the state had one, for which there is no entry
};
[[nodiscard]] Result<SplitState> split_common_state(
    const std::string& common_state, const std::vector<GroupedParameter>& parameters);

}  // namespace shardwright
