// SPDX-License-Identifier: Apache-2.0
#include "state/joined_groups.h"

#include "base/fail.h"
#include "state/param_group.h"
#include "state/plain_value.h"

namespace shardwright {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

Status JoinedGroups::add(const Document& from, Value list, const std::string& holder) {
  bool is_list = list.is(Kind::kList);
  for (std::size_t g = 0; g < list.size(); ++g) is_list = is_list && list[g].is(Kind::kDict);
  if (!is_list) {
    return fail(Code::kStateUnreadable, "{}: found {}, expected a list of parameter groups", holder,
                list ? std::string(pickle::kind_name(list.kind())) : translated("nothing"));
  }
  const auto own = [&](Value value) -> Result<Value> {
    if (&from == &document_) return value;
    Result<Value> copy = copy_plain_value(document_, value);
    if (!copy) return std::unexpected(std::move(copy).error().within(holder));
    return copy;
  };
  for (const std::size_t g : SW_TRY(agreement_.add(from, list, holder))) {
    groups_.push_back(SW_TRY(own(list[g])));
    document_.erase(groups_.back(), "params");  // numbers of the holder's own parameters
  }
  for (std::size_t g = 0; g < list.size() && !step_; ++g) {
    if (const Value step = list[g].find("step")) step_ = SW_TRY(own(step));
  }
  return {};
}

Value JoinedGroups::take() {
  for (const Value group : groups_) {
    // Muon, beside Adam, counts none.
    if (step_ && read_param_group(group).has_betas) document_.set(group, "step", step_);
  }
  return document_.list(groups_);
}

}  // namespace shardwright
