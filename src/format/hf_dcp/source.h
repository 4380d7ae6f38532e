// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// A Hugging Face model in torch.distributed.checkpoint's files: FSDP, FSDP2, torchtitan, VeOmni,
/// accelerate. Its names are Hugging Face's, or their trainer's own, behind any prefix.
[[nodiscard]] const SourceFormat& hf_dcp_source();

/// Whether some tensor is called as a Hugging Face model's embedding, head or attention is, or as
/// trainers of such models call it, whatever stands before its name. Enough to look for the model's
/// family.
[[nodiscard]] bool has_hf_names(const Catalog& catalog);

}  // namespace shardwright
