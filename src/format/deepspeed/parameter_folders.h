// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/torch_file.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What a file of a universal checkpoint holds of a parameter.
struct StoredState {
  LocatedTensor place;
  bool is_bare = false;  ///< the file is the tensor itself, none under 'param'
};

/// A state of a parameter: its master weight, a moment.
struct ParameterState {
  std::string kind;        ///< `fp32`, `exp_avg`
  std::string path;        ///< from the checkpoint's root
  std::uint32_t file = 0;  ///< in Catalog::files
  Result<StoredState> stored;
};

/// A folder of a universal checkpoint: what is stored of one parameter.
struct ParameterFolder {
  std::string name;  ///< the parameter's
  std::string path;  ///< from the checkpoint's root
  Status listed;
  std::vector<ParameterState> states;  ///< the master weight first, the others as listed
  std::string step_path;               ///< empty where there is none
  Result<std::optional<std::int64_t>> step = std::nullopt;
};

/// Reads the folders of these parameters, many at a time: a model has thousands of such files, each
/// of which takes as long as its disk or server needs to answer. Adds the files of the states to
/// those of the checkpoint, in order. What cannot be read is told in its place.
/// Error: kOutOfMemory.
[[nodiscard]] Result<std::vector<ParameterFolder>> read_parameter_folders(
    const std::vector<std::string>& names, Checkpoint& checkpoint);

}  // namespace shardwright
