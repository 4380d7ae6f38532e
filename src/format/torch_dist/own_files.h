// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/torch_dist/torch_dist_target.h"
#include "layout/job_layout.h"

namespace shardwright {

/// Puts every piece into the file of the rank that will read it, where `job` loads all of `placed`
/// fully parallel: Megatron-Core shares each group's pieces out by a rule that we know. Of what all
/// tensor ranks hold under one name the first one's group has the piece; a copy under a name of its
/// own lies with its tensor rank. `placed` has Placement's pieces for the job's sizes.
[[nodiscard]] Status put_into_own_files(const JobLayout& job, PlacedParts& placed);

}  // namespace shardwright
