// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/legacy/legacy_optimizer_layout.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// An entry of a rank's state dict.
struct LegacyEntry {
  enum class Kind : std::uint8_t {
    kTensor,  ///< and an empty one for a Transformer Engine module's state
    kNone,    ///< the state of one of Megatron-Core's own modules
  };
  std::string name;
  Kind kind = Kind::kTensor;
  DType dtype = DType::kU8;
  Dims shape;
};

/// The entries of one state dict: a rank's model, or one virtual stage of it.
using LegacyStateDict = std::vector<LegacyEntry>;

/// A rank's file: its pickle, and where the storage of each tensor goes, in the entries' order.
struct LegacyFileLayout {
  std::string pickle;
  std::vector<ByteRange> storages;
  std::vector<OptimizerStorage> optimizer;  ///< the last of the storages: what they hold
  std::uint64_t file_bytes = 0;
};

/// What Megatron calls a rank's file, and torch.save the folder of the records in it.
inline constexpr std::string_view kLegacyFileName = "model_optim_rng.pt";
inline constexpr std::string_view kLegacyPrefix = "model_optim_rng";

/// What a rank's optimizer trains, as torch lists it.
struct LegacyTrained {
  std::vector<TensorDesc> parameters;
  bool is_mixed = true;  ///< master weights stand beside parameters of 16 bits
};

/// The rank that a file is for, in a run that has as many ranks as there are files of it: its
/// arguments say so, should it lie in another rank's folder.
struct LegacyWriter {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t data = 1;  ///< data-parallel ranks of that run
};

/// Lays a rank's file out: arguments, version and iteration of `common_state` (the bytes of a
/// common.pt), the models, and the optimizer if `trained` is not null. Random states are left out:
/// Megatron loads such a file with --no-load-rng, and without an optimizer with --no-load-optim.
[[nodiscard]] Result<LegacyFileLayout> layout_legacy_file(const std::string& common_state,
                                                          const LegacyWriter& writer,
                                                          std::span<const LegacyStateDict> models,
                                                          const LegacyTrained* trained = nullptr);

}  // namespace shardwright
