// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "convert/drafting.h"

namespace shardwright {

/// Whether a request to average checkpoints makes sense, before anything is opened. Error: kUsage.
[[nodiscard]] Status check_average(const ConvertRequest& request);

/// What is asked of one of the checkpoints that are averaged with `first`, which is open.
[[nodiscard]] ConvertRequest request_for_averaged(const Drafting& first, const std::string& path);

/// The drafts of the input become the first terms of sums.
void begin_average(Drafting& first);

/// Adds the drafts of another checkpoint as the next terms. Errors: kUsage for a checkpoint that is
/// given twice; kUnmatchedSource, kShapeMismatch and kDtypeUnsupported naming a tensor that is not
/// the same in both, and the paths.
[[nodiscard]] Status add_to_average(Drafting other, Drafting& first);

}  // namespace shardwright
