// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/legacy/legacy_ranks.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Fills a checkpoint whose location is a folder of `mp_rank_*` folders: each rank's tensors as
/// chunks of Megatron's global ones, one tensor per layer. What several ranks hold alike is there
/// several times (equal boxes). Errors: kLegacyLayout, kShapeMismatch, those of read_legacy_file.
/// What is wrong with single files, ranks or the state is told to `defects`. Source:
/// megatron/training/checkpointing.py.
[[nodiscard]] Status read_legacy(Checkpoint& checkpoint, Defects& defects);

/// Puts the tensors of ranks' files together in the checkpoint's catalog. Errors: those of
/// legacy_parts, with the file.
[[nodiscard]] Status add_ranks(Checkpoint& checkpoint, const LegacyRanks& ranks, Defects& defects);

}  // namespace shardwright
