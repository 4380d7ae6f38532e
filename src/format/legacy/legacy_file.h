// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/torch_archive.h"
#include "format/tensors_beside.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// A tensor as one rank saved it.
struct LegacyTensor {
  /// The rank's own: layers count from 0 in each (virtual) stage. That of an ordinary model where
  /// the file has LoongForge's names, whose second embedding is then there twice.
  std::string name;
  LocatedTensor place;  ///< dtype and shape; where it lies only with LegacyDetail::kPlaces
};

/// One state dict of a rank: all of its model, or one virtual stage of it.
struct LegacyModel {
  std::vector<LegacyTensor> tensors;  ///< in the file's order
  std::vector<std::string> objects;   ///< entries that are no tensors (`..._extra_state`), by name
  /// The first of those that say something (holds_module_state); empty where none does.
  std::string module_state;
  /// From before Megatron-Core: nested dicts, whose tensors have the names of today here.
  bool is_early = false;
};

/// A file of the legacy format (`model_optim_rng.pt`), its pickle read inertly.
struct LegacyFile {
  std::vector<LegacyModel> models;  ///< of `model`, or of `model0`, `model1`, ...
  /// Plain values of `args`; empty where the file has none. `num_layers` is without MindSpeed's
  /// layers that have no weights.
  Arguments arguments;
  std::optional<double> checkpoint_version;
  std::optional<std::int64_t> iteration;
  std::vector<std::string> keys;  ///< of the outermost dict, in order
  bool has_optimizer = false;     ///< and not None
  TensorsBeside unread;           ///< tensors under keys that Megatron has not (`ema`)
};

enum class LegacyDetail : std::uint8_t {
  kNames,   ///< the pickle only
  kPlaces,  ///< and one small read for each tensor, to find its bytes
};

/// Reads a torch.save file of a rank's state, of any version, or of its model's state dict alone,
/// or of a list of its virtual stages' alone. Errors: kUnsupportedFormat when the outermost value
/// is no dict or has no model, those of TorchArchive.
[[nodiscard]] Result<LegacyFile> read_legacy_file(const ReadableFile& file, LegacyDetail detail);

}  // namespace shardwright
