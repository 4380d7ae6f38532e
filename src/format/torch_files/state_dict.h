// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codec/torch_file.h"
#include "codec/torch_tensor.h"
#include "format/tensors_beside.h"

namespace shardwright {

/// One tensor of a state dict, by its key.
struct StateDictTensor {
  std::string name;
  LocatedTensor place;
};

/// A model's state dict as torch.save stored it.
struct StateDict {
  std::vector<StateDictTensor> tensors;  ///< in the file's order
  std::vector<std::string> left_out;     ///< keys of what is no tensor
  std::vector<std::string> beside;  ///< keys of this and other state dicts, where there are others
  TensorsBeside unread;             ///< further tensors of the file
  std::string saved_as;             ///< TorchFile::saved_as
};

/// The pairs of the state dict in the value of a file: the one under `state_dict`, `model`,
/// `module` or `model_state_dict`, or its outermost dict. Errors: kUnsupportedFormat;
/// kTwoCheckpoints where several of those have tensors.
[[nodiscard]] Result<pickle::Value> find_state_dict(pickle::Value root, const std::string& file);

/// What of the value of a file has tensors and is not the state dict that was found in it.
[[nodiscard]] Result<TensorsBeside> tensors_beside(pickle::Value root, pickle::Value state_dict,
                                                   Allowance& allowance);

/// Reads the state dict of a file: its outermost dict, or the one under `state_dict`, `model`,
/// `module` or `model_state_dict`. Nothing that the pickle asks for is run. Errors:
/// kUnsupportedFormat for a file that holds none, one rank's part of a Megatron model, or dicts of
/// tensors within the dict; those of TorchFile with the tensor's name (sparse, quantised).
[[nodiscard]] Result<StateDict> read_state_dict(const ReadableFile& file);

/// Notes what of a file is left out.
void tell_left_out(const StateDict& dict, const std::string& path, Checkpoint& checkpoint);

}  // namespace shardwright
