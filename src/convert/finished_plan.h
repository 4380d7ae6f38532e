// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// From drafts to a plan that is proven: what goes along is made to say what the tensors are, the
/// target lays its files out. Errors: kPickleRunsCode, those of the target, of check_plan and
/// budget_of.
[[nodiscard]] Result<PreparedConversion> finish_plan(Drafting drafting);

}  // namespace shardwright
