// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
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

/// What the files of a pipeline stage's ranks have in common: all but the rank's number.
struct LegacyStageLayout {
  std::vector<std::shared_ptr<const std::string>> around_rank;  ///< the pickle without the number
  std::vector<std::uint64_t> storage_bytes;                     ///< in the entries' order
  std::vector<OptimizerStorage> optimizer;  ///< the last of the storages: what they hold
  bool drops_loss_scale = false;            ///< the common state has one in a tensor
};

/// A rank's file: its pickle, and where its storages go.
struct LegacyFileLayout {
  std::vector<std::shared_ptr<const std::string>> pickle;  ///< these, one behind the other
  std::shared_ptr<const std::vector<ByteRange>> storages;
  std::uint64_t file_bytes = 0;
};

/// What Megatron calls a rank's file, and torch.save the folder of the records in it.
inline constexpr std::string_view kLegacyFileName = "model_optim_rng.pt";
inline constexpr std::string_view kLegacyPrefix = "model_optim_rng";

/// What a rank's optimizer trains, as torch lists it.
struct LegacyTrained {
  std::vector<TrainedParameter> parameters;
  bool is_mixed = true;  ///< master weights stand beside parameters of 16 bits
};

/// The run that files are for, which has as many ranks as there are files of it: its arguments say
/// so, should they lie in other ranks' folders.
struct LegacyWriters {
  std::int64_t world = 1;
  std::int64_t data = 1;  ///< data-parallel ranks of that run
};

/// Lays a stage's files out: arguments, version and iteration of `common_state` (the bytes of a
/// common.pt), the models, and the optimizer if `trained` is not null. Random states are left out:
/// Megatron loads such a file with --no-load-rng, and without an optimizer with --no-load-optim.
[[nodiscard]] Result<LegacyStageLayout> layout_legacy_stage(const std::string& common_state,
                                                            const LegacyWriters& writers,
                                                            std::span<const LegacyStateDict> models,
                                                            const LegacyTrained* trained = nullptr);

/// The files of a stage's ranks. What several have in common they share.
class LegacyStageFiles {
 public:
  explicit LegacyStageFiles(LegacyStageLayout stage) : stage_(std::move(stage)) {}

  /// That of the rank with this number. Errors as TorchLayout::make.
  [[nodiscard]] Result<LegacyFileLayout> of_rank(std::int64_t rank);
  [[nodiscard]] const LegacyStageLayout& stage() const { return stage_; }

 private:
  LegacyStageLayout stage_;
  std::map<std::size_t, LegacyFileLayout> by_size_;  // of the pickle, which decides where all lies
};

}  // namespace shardwright
