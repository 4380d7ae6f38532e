// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// What Megatron saves with `--use-torch-fsdp2 --ckpt-format torch_dcp`: its state dict as torch's
/// own DCP flattens it, `model.decoder.…`, `args` and an optimizer whose states have numbers. A
/// second version of Megatron-FSDP saves such names by itself. Source: generate_state_dict in
/// megatron/training/checkpointing.py.
[[nodiscard]] const SourceFormat& torch_dcp_source();

}  // namespace shardwright
