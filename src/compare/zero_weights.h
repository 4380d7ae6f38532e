// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/jobs.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// DeepSpeed saves weights twice: in float32 in the optimizer's files (or in a folder for each
/// parameter), where they are read from, and as the model computed with them in
/// `*_model_states.pt`. Compares them where the latter are whole, as ZeRO 3's are not: rounded, the
/// ones are the others, or the files are of two saves. Nothing is compared of other formats and
/// with kNone. Error: kZeroLayout, told to `defects`.
[[nodiscard]] Status check_zero_weights(const Checkpoint& checkpoint, const Catalog& catalog,
                                        ReplicaCheck check, Defects& defects,
                                        const Workers& workers = {});

}  // namespace shardwright
