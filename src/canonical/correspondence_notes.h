// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/mapping.h"

namespace shardwright {

/// Says how many HF tensors Megatron has no place for, so that they are kept under other names.
void tell_kept(const Correspondence& correspondence, std::vector<std::string>& notes);

/// Says which tensors an export rounds to the dtype that they were imported in. Training may have
/// moved them to values that only Megatron's dtype holds.
void tell_rounded(const Correspondence& correspondence, std::vector<std::string>& notes);

/// Says which HF tensors an export does not have although there were such.
void tell_lacking(const Correspondence& correspondence, std::vector<std::string>& notes);

}  // namespace shardwright
