// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/adam_groups.h"

namespace shardwright {

bool are_adam_groups(pickle::Value groups) {
  if (!groups.is(pickle::Kind::kList) || groups.size() == 0) return false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].find("betas").size() != 2 || !groups[g].find("eps")) return false;
  }
  return true;
}

}  // namespace shardwright
