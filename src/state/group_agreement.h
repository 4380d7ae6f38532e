// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "shardwright/error.h"
#include "state/group_settings.h"

namespace shardwright {

/// Holds the parameter groups that several holders (components of a MIMO run, ranks' files) have of
/// one optimizer against each other. Megatron tells groups apart by what they say of themselves:
/// those that say alike are one group, of which all settings are equal, and all groups have made
/// the same steps.
class GroupAgreement {
 public:
  /// `way_out` ends the message of a disagreement.
  explicit GroupAgreement(std::string way_out) : way_out_(std::move(way_out)) {}

  /// Which groups of `list`, a list of dicts of `document`, no other holder had; `holder` names it
  /// in messages. Error: kOptimizerMismatch where they disagree about a setting or the step.
  [[nodiscard]] Result<std::vector<std::size_t>> add(const pickle::Document& document,
                                                     pickle::Value list, const std::string& holder);

 private:
  struct Group {
    GroupSettings said;
    std::string holder;
  };

  [[nodiscard]] Status check_step(const Group& group);
  [[nodiscard]] Status check_alike(const Group& known, const Group& group) const;
  [[nodiscard]] Status check_setting(const Group& known, const Group& group,
                                     const std::string& name) const;

  std::string way_out_;
  std::vector<Group> groups_;
  Group step_;  // the first that has one
};

}  // namespace shardwright
