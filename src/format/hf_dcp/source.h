// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// A Hugging Face model in torch.distributed.checkpoint's files: FSDP, FSDP2, torchtitan, VeOmni,
/// accelerate. Its names are Hugging Face's, or their trainer's own, behind any prefix.
[[nodiscard]] const SourceFormat& hf_dcp_source();

}  // namespace shardwright
