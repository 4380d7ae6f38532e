// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/pickle_value.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What of the optimizer is wanted.
struct LegacyStateParts {
  enum class Optimizer : std::uint8_t {
    kNothing,
    kGroups,  ///< a rank's parameter groups, as torch_dist has them
    kAsItIs,  ///< whatever the state has there
  };
  Optimizer optimizer = Optimizer::kNothing;
  std::optional<std::int64_t> step;  ///< that its parameters have each for themselves
};

/// A rank's common state: bytes of a torch.save archive, or what they are to be made of.
template <class T>
struct LegacyState {
  T state;
  bool drops_loss_scale = false;  ///< the optimizer had one in a tensor, which is not carried
};

/// Of a rank's file what Megatron-Core's common.pt would hold: arguments, iteration, version and
/// scheduler, without tensors and random states; of the optimizer its parameter groups if they are
/// wanted, as torch_dist's `fully_reshardable` has them.
[[nodiscard]] Result<LegacyState<std::string>> read_legacy_state(const ReadableFile& file,
                                                                 const LegacyStateParts& parts);

/// Whether a tensor hangs below a value: its storage is a record of its own, which is not carried.
[[nodiscard]] bool has_storage(const pickle::Document& document, pickle::Value value);

/// The same of any torch.save archive of a state, to be completed: its root is a dict.
[[nodiscard]] Result<LegacyState<pickle::Document>> plain_state(const ReadableFile& file,
                                                                const LegacyStateParts& parts = {});

}  // namespace shardwright
