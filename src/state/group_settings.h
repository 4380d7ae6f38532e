// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
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

/// Takes the settings that are classes from the groups of all these optimizers; their names.
/// An optimizer with parts on the CPU has the classes of its parts there, and takes them from the
/// run's own options again. Megatron-Core reads common.pt and files of ranks as torch reads weights
/// only, which refuses a class that nobody has called safe. Source: HybridDeviceOptimizer in
/// megatron/core/optimizer/cpu_offloading, SAFE_GLOBALS in megatron/core/safe_globals.py.
[[nodiscard]] std::set<std::string> erase_classes(pickle::Document& document,
                                                  pickle::Value optimizer);

}  // namespace shardwright
