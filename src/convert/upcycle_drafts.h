// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// What of the request can be told before anything is opened. Error: kUsage for a target that is
/// not Megatron's, and for numbers that do not go together.
[[nodiscard]] Status check_upcycling(const ConvertRequest& request, const TargetTraits& target);

/// Makes experts of the dense MLPs of the drafts of a Megatron target, where the request asks for
/// it, as Megatron-Core's upcycling_utils do. `arguments` are the dense model's; those of the new
/// one become the target's. Errors: kUsage for a model that has experts or no MLPs, or MLPs that
/// granularity does not divide; kOptimizerUnsupported; kConfigMissing where nothing tells an
/// activation that matters; kDtypeUnsupported.
[[nodiscard]] Status upcycle(Drafting& drafting, const Arguments& arguments);

}  // namespace shardwright
