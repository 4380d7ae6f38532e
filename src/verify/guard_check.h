// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/verify.h"

namespace shardwright {

/// What stops a conversion, as findings: copies under names that no model looks for, optimizer
/// states that cannot be read, and all that check_source() looks at. Tensors that have lost chunks
/// (`lost`) or have holes are left out: they were told. The catalog is located; afterwards it has
/// the optimizer's states too.
[[nodiscard]] Status check_guards(Checkpoint& checkpoint, const Defects& lost,
                                  const VerifyOptions& options, VerifyReport& report);

}  // namespace shardwright
