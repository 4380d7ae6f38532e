// SPDX-License-Identifier: Apache-2.0
#include "state/joined_groups.h"

#include "base/fail.h"

namespace shardwright {

Status JoinedGroups::add(pickle::Value list, const std::string& holder) {
  for (const std::size_t g : SW_TRY(agreement_.add(document_, list, holder))) {
    document_.erase(list[g], "params");  // numbers of the holder's own parameters
    groups_.push_back(list[g]);
  }
  for (std::size_t g = 0; g < list.size() && !step_; ++g) step_ = list[g].find("step");
  return {};
}

pickle::Value JoinedGroups::take() {
  for (const pickle::Value group : groups_) {
    if (step_) document_.set(group, "step", step_);
  }
  return document_.list(groups_);
}

}  // namespace shardwright
