// SPDX-License-Identifier: Apache-2.0
#include "state/group_agreement.h"

#include <string_view>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kStep = "step";

}  // namespace

Result<std::vector<std::size_t>> GroupAgreement::add(const pickle::Document& document,
                                                     pickle::Value list,
                                                     const std::string& holder) {
  std::vector<std::size_t> fresh;
  // Those of one holder are told apart by more than their identity, or it would have one.
  const std::size_t known_end = groups_.size();
  for (std::size_t g = 0; g < list.size(); ++g) {
    Group group{SW_TRY(read_group_settings(document, list[g])), holder};
    SW_TRY(check_step(group));
    const Group* unlike = nullptr;
    bool is_known = false;
    for (std::size_t k = 0; k < known_end && !is_known; ++k) {
      if (groups_[k].said.identity != group.said.identity) continue;
      is_known = check_alike(groups_[k], group).has_value();
      if (unlike == nullptr) unlike = &groups_[k];
    }
    if (is_known) continue;
    if (unlike != nullptr) return std::unexpected(check_alike(*unlike, group).error());
    fresh.push_back(g);
    groups_.push_back(std::move(group));
  }
  return fresh;
}

Status GroupAgreement::check_step(const Group& group) {
  if (!group.said.settings.contains(kStep)) return {};
  if (step_.holder.empty()) step_ = group;
  return check_setting(step_, group, std::string(kStep));
}

// Who had no parameters for a group may have no step there.
Status GroupAgreement::check_alike(const Group& known, const Group& group) const {
  for (const auto* settings : {&known.said.settings, &group.said.settings}) {
    for (const auto& [name, setting] : *settings) {
      if (name != kStep) SW_TRY(check_setting(known, group, name));
    }
  }
  return {};
}

Status GroupAgreement::check_setting(const Group& known, const Group& group,
                                     const std::string& name) const {
  const auto of = [&](const Group& one) {
    const auto found = one.said.settings.find(name);
    return found == one.said.settings.end() ? Setting() : found->second;
  };
  const Setting expected = of(known);
  const Setting found = of(group);
  if (expected.bytes == found.bytes) return {};
  return fail(Code::kOptimizerMismatch,
              "{}: found {} {}, expected {} as in {}: one optimizer has one; {}", group.holder,
              name, found.shown, expected.shown, known.holder, way_out_);
}

}  // namespace shardwright
