// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "format/legacy/legacy_ranks.h"

namespace shardwright {

/// Whether an `output_layer.weight` of the last of several stages is the word embedding (tied), and
/// whether only its bytes say so.
struct CopiedHead {
  bool is_tied = false;
  bool is_by_bytes = false;
};

/// What a run's arguments say of it; nothing where they don't.
[[nodiscard]] std::optional<bool> told_tying(const Arguments& arguments);

/// What run_config.yaml or a config.json beside the ranks' files says of it, else what the bytes
/// do: `ranks` hold their tensors' places, of `axes`. Heads with other rows than the embedding are
/// none of it.
[[nodiscard]] Result<CopiedHead> find_copied_head(const Checkpoint& checkpoint,
                                                  const std::vector<LegacyRankFile>& ranks,
                                                  const LegacyAxes& axes);

}  // namespace shardwright
