// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "state/group_agreement.h"

namespace shardwright {

/// The parameter groups of several holders (components of a MIMO run, ranks) as those of the one
/// optimizer that they are parts of.
class JoinedGroups {
 public:
  /// The groups become those of `document`, which outlives this. `way_out` as for GroupAgreement.
  JoinedGroups(pickle::Document& document, std::string way_out)
      : document_(document), agreement_(std::move(way_out)) {}

  /// `list` is of `from`: groups of another document are copied. Errors: kStateUnreadable for
  /// anything but a list of dicts, and where a group can't be copied; those of GroupAgreement::add.
  [[nodiscard]] Status add(const pickle::Document& from, pickle::Value list,
                           const std::string& holder);

  /// All of them, in the order in which they came. Who had no parameters for a group may have no
  /// step there, and gets that of the others.
  [[nodiscard]] pickle::Value take();

 private:
  pickle::Document& document_;
  GroupAgreement agreement_;
  std::vector<pickle::Value> groups_;
  pickle::Value step_;
};

}  // namespace shardwright
