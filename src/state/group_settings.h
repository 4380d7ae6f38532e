// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "shardwright/error.h"

namespace shardwright {

/// A value in a form that is equal for equal values, and as messages show it.
struct Setting {
  std::string bytes;
  std::string shown = "nothing";
};

/// What a parameter group says, but which parameters it has.
struct GroupSettings {
  /// Equal for groups that are one to Megatron.
  /// Source: param_group_identifier_keys in megatron/core/optimizer/optimizer.py.
  std::string identity;
  std::map<std::string, Setting, std::less<>> settings;
};

/// Errors: those of pickle::encode.
[[nodiscard]] Result<Setting> read_setting(const pickle::Document& document, pickle::Value value);

/// The same of a dict of settings.
[[nodiscard]] Result<GroupSettings> read_group_settings(const pickle::Document& document,
                                                        pickle::Value group);

/// The optimizers that the `optimizer` of a common state describes: of a chained one, which
/// numbers them, each.
[[nodiscard]] std::vector<pickle::Value> chained_optimizers(pickle::Value optimizer);

}  // namespace shardwright
