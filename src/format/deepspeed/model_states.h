// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/torch_archive.h"
#include "format/tensors_beside.h"
#include "layout/zero_partition.h"
#include "shardwright/storage.h"

namespace shardwright {

/// A tensor of a model-states file, by its key.
struct StateTensor {
  std::string name;
  LocatedTensor place;
};

/// A `*_model_states.pt` of DeepSpeed, its pickle read inertly.
struct ModelStates {
  std::vector<StateTensor> module;    ///< the model's own state dict; empty where layers have files
  std::vector<std::string> left_out;  ///< keys of it that are no tensors
  std::vector<std::string> buffers;   ///< names in it that are buffers
  std::vector<ZeroGroup> groups;      ///< what the optimizer has flattened; empty without ZeRO
  ZeroGroup frozen;                   ///< parameters that are not trained
  std::vector<StateTensor> frozen_parts;  ///< under ZeRO 3 a rank's part of each, flat
  std::vector<std::pair<std::string, std::string>> shared;  ///< a name, and that of its tensor
  TensorsBeside unread;  ///< further tensors of the file: the optimizer's where there is no ZeRO
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> skipped;  ///< of them, for their gradients were not finite
  std::optional<std::int64_t> data_ranks;
  std::optional<std::int64_t> model_ranks;
  bool has_groups = false;  ///< `param_shapes` is there
};

/// Errors: kZeroLayout for what DeepSpeed does not write, kUnsupportedFormat for experts that are
/// shared out by AutoEP, those of TorchFile.
[[nodiscard]] Result<ModelStates> read_model_states(const ReadableFile& file);

}  // namespace shardwright
