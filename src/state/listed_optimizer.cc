// SPDX-License-Identifier: Apache-2.0
#include "state/listed_optimizer.h"

#include <array>
#include <string_view>

#include "state/state_document.h"

namespace shardwright {

Result<std::string> without_optimizer_list(std::string common_state) {
  StateDocument state = SW_TRY(StateDocument::read(common_state));
  constexpr std::array<std::string_view, 2> kNames = {"optimizer", "optimizer_states"};
  for (const std::string_view name : kNames) {
    const pickle::Value list = state.dict().find(name);
    if (!list || !list.is(pickle::Kind::kList) || list.size() != 1) continue;
    const pickle::Value only = list[0];
    if (!only.is(pickle::Kind::kDict)) continue;
    state.document().erase(state.dict(), name);
    state.document().set(state.dict(), std::string(kNames.front()), only);
    return state.encode();
  }
  return common_state;
}

}  // namespace shardwright
