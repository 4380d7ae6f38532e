// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/legacy/legacy_layout.h"
#include "layout/legacy_shards.h"

namespace shardwright {

/// What the modules of a state dict keep beside their parameters. A module's state follows its
/// parameters, as torch orders them.
class ExtraStates {
 public:
  /// `is_local`: the modules are Megatron-Core's own. `output_is_head`: the output layer is a plain
  /// linear of torch's.
  ExtraStates(const std::vector<LegacyShard>& shards, bool is_local, bool final_norm_has_state,
              bool output_is_head);

  /// In front of the i-th tensor: that of an attention, which has no parameters and comes first.
  void append_before(const std::string& name, std::size_t i, LegacyStateDict& dict) const;
  /// Behind the i-th tensor.
  void append(const std::string& name, std::size_t i, LegacyStateDict& dict) const;

 private:
  bool is_local_;
  bool final_norm_has_state_;
  bool output_is_head_;
  std::set<std::string> linears_;  // in the place of an attention or an MLP
  std::unordered_map<std::string, std::size_t> first_;
  std::unordered_map<std::string, std::size_t> last_;
};

}  // namespace shardwright
