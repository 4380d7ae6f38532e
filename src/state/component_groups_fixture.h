// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/pickle_value.h"

namespace shardwright {

/// A parameter group as a test wants it.
struct GroupFacts {
  double wd_mult = 1.0;
  std::optional<std::int64_t> step = 3;
  double lr = 1e-3;
  double max_lr = 2e-3;
  bool is_expert = false;
};

/// A list of groups in a document.
[[nodiscard]] pickle::Value make_groups(pickle::Document& document,
                                        const std::vector<GroupFacts>& groups);

/// What a group says, in one line: `wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=0`, with
/// ` params=N` where it has such a list.
[[nodiscard]] std::string group_line(pickle::Value group);

/// Bytes of the entry that a component's optimizer keeps its groups in.
[[nodiscard]] std::string groups_entry(const std::vector<GroupFacts>& groups);

/// The lines of an entry's groups, and those of the optimizer in a common state; of a chained one
/// with `0 ` or `1 ` before them.
[[nodiscard]] std::vector<std::string> lines_of_entry(const std::string& bytes);
[[nodiscard]] std::vector<std::string> lines_of_state(const std::string& common_state);

}  // namespace shardwright
