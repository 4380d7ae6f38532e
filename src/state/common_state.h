// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/state_sharding.h"
#include "shardwright/checkpoint.h"
#include "state/optimizer_chain.h"
#include "state/state_document.h"

namespace shardwright {

/// What to change in a common state that is carried to another layout.
struct CommonStateEdits {
  /// Set, added where missing; a state without any gets them all.
  std::vector<std::pair<std::string, ArgValue>> arguments;
  bool drop_optimizer = false;
  std::optional<DType> dtype;  ///< the weights', where it is not what the run's arguments say
  /// Set where the target's entries are not named as the source's were: whether layers are
  /// numbered.
  std::optional<bool> numbered_layers;
  /// The target's optimizer states are those of tensors, whatever the source says of them.
  bool says_reshardable = false;
  std::optional<std::int64_t> iteration;  ///< where the state says none
  ChainLayout chain = {};                 ///< how the target has the optimizers of experts
  bool has_chained_names = false;         ///< states are named by their part of the chain
};

/// Megatron-Core's common state: the dict of common.pt (up to 0.18) or of the DCP entry
/// `common_state/shard_0_1`, where it is the only element of a list. Read inertly: everything that
/// is not asked about is carried as it is.
class CommonState {
 public:
  /// `bytes` is a torch.save archive. Error: kStateUnreadable, and those of the archive reader.
  [[nodiscard]] static Result<CommonState> read(std::string bytes);

  /// The attributes of `args` that are plain values; empty when there are no args.
  [[nodiscard]] const Arguments& arguments() const { return arguments_; }
  /// `iteration`, if the state has one, or what Lightning calls it (`global_step`).
  [[nodiscard]] std::optional<std::int64_t> iteration() const;
  /// How it says that the optimizer's states were saved.
  [[nodiscard]] StateSharding sharding() const;

  /// Bytes of a common.pt that every Megatron-Core version reads, and what was changed on the way
  /// besides the edits: enums that only newer versions have become plain values.
  [[nodiscard]] Result<std::string> encode(const CommonStateEdits& edits,
                                           std::vector<std::string>& notes) const;

 private:
  CommonState(std::string bytes, std::shared_ptr<const StateDocument> state, Arguments arguments)
      : bytes_(std::move(bytes)), state_(std::move(state)), arguments_(std::move(arguments)) {}

  std::string bytes_;
  std::shared_ptr<const StateDocument> state_;
  Arguments arguments_;
};

/// Bytes of a new common.pt for weights without training state: arguments as an
/// argparse.Namespace, checkpoint_version 3.0, the iteration, and content_metadata that tells
/// Megatron-Core how the entries are named.
[[nodiscard]] Result<std::string> new_common_state(
    const std::vector<std::pair<std::string, ArgValue>>& arguments, std::int64_t iteration,
    bool has_numbered_layers);

/// Bytes of an empty `_extra_state` entry, which Transformer Engine modules ask for.
[[nodiscard]] Result<std::string> empty_extra_state();

}  // namespace shardwright
