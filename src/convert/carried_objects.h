// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/target_parts.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Adds the entries of the source that are no tensors and keep their meaning in the target. RNG and
/// rerun states do where the ranks stay the same. Notes tell what is dropped, and what the source
/// lacks itself.
[[nodiscard]] Status carry_objects(const ConvertRequest& request, const Checkpoint& source,
                                   const Catalog& selected, TargetParts& parts,
                                   std::vector<std::string>& notes);

/// Megatron asks for the RNG states of a checkpoint that is of as many ranks as the job, unless the
/// run's arguments say that none were saved: adds that where none are carried. Rank files have no
/// use for it.
void say_whether_rng_is_there(const ConvertRequest& request, const TargetParts& parts,
                              ArgumentList& arguments);

}  // namespace shardwright
