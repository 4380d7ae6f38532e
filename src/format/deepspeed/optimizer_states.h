// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codec/torch_archive.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Where a parameter's part begins in a rank's flat buffer, and how long it is.
struct ZeroFragment {
  std::string name;
  std::int64_t at = 0;
  std::int64_t elements = 0;
};

/// What a rank keeps of a group of parameters, flattened and put one behind another.
struct ZeroBuffers {
  LocatedTensor weights;                                     ///< the master weights
  std::map<std::string, LocatedTensor, std::less<>> states;  ///< `exp_avg`, ... in the same places
  std::vector<ZeroFragment> fragments;                       ///< empty where the file does not tell
  std::int64_t padding = 0;           ///< elements behind the weights, which the states still have
  bool is_muon = false;               ///< of DeepSpeed's own, whose states are of whole parameters
  std::vector<std::string> left_out;  ///< states that are no buffers like the weights
};

/// A `*_optim_states.pt` of DeepSpeed, its pickle read inertly.
struct OptimizerStates {
  std::int64_t stage = 1;
  std::int64_t ranks = 0;  ///< that share the parameters
  std::vector<ZeroBuffers> groups;
  /// Elements behind each parameter of each group, so that the next one is aligned; may be empty.
  std::vector<std::vector<std::int64_t>> paddings;
  std::optional<std::int64_t> step;
  bool is_adam = false;  ///< or its kin, which keep two moments too
};

/// Errors: kZeroLayout for what is no optimizer of ZeRO, kUnsupportedFormat for groups that
/// different numbers of ranks share, those of TorchFile.
[[nodiscard]] Result<OptimizerStates> read_optimizer_states(const ReadableFile& file);

}  // namespace shardwright
