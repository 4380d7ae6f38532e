// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/folder.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Fills in the catalog of a NeMo 1 checkpoint, be it a `.nemo` file or the folder that one was
/// unpacked into: `model_weights.ckpt` alone, in `mp_rank_TT` or in `tp_rank_TT_pp_rank_PPP`, or
/// `model_weights` in torch_dist. Errors: kUnsupportedFormat for zarr and for shards of FSDP,
/// kLegacyLayout for ranks that are missing; those of reading and of legacy_parts.
[[nodiscard]] Status read_nemo_one(Checkpoint& checkpoint, Defects& defects);

/// What in a folder shows weights of NeMo 1: the name of their file or folder; "" without any.
[[nodiscard]] std::string nemo_weights_in(const Folder& folder);

}  // namespace shardwright
