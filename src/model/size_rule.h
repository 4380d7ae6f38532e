// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/size_expr.h"

namespace shardwright {

/// Sizes of models that config.json only names (`openai/clip-vit-large-patch14-336`): by the last
/// part of such a path.
struct NamedSizes {
  std::string key;  ///< from the root of the file
  std::vector<std::pair<std::string, std::int64_t>> sizes;
};

/// Tensors whose extent along an axis a size is, where nothing in config.json leads to it.
struct SizeShown {
  std::string hf;
  std::string megatron;
  int axis = 0;
};

/// Where a size comes from, in the words of config.json and of Megatron's arguments.
struct SizeRule {
  std::string name;
  std::vector<std::string> hf;      ///< the first is the one that is written
  std::vector<std::string> args;    ///< likewise; a leading `!` negates a flag
  std::string args_if;              ///< ignore `args` where this argument is false or absent
  std::string none_without;         ///< the first of `args` is None where that size is 0
  NamedSizes named;                 ///< where no key of `hf` is set
  std::vector<SizeExpr> fallbacks;  ///< the first whose names are known
  bool optional = false;
  bool flag = false;        ///< written as true or false
  bool first_wins = false;  ///< several names may legitimately differ
  /// Not one number but one of each layer: 1 where the attention has a sliding window, else 0, for
  /// conditions inside the loop over layers. `fallbacks`: every how many-th layer has none.
  bool each_window = false;
  /// Likewise: 1 for the layers from that size on.
  std::string each_from;
  /// Likewise: 1 for the layers whose numbers are listed.
  bool each_listed = false;
  /// Likewise: 1 for the layers whose entry in a list is over this number.
  std::optional<std::int64_t> each_over;
  /// Likewise, for shapes too: the layer's entry in a list; without one, what `fallbacks` say.
  bool each_entry = false;

  /// Whether it is a number of each layer.
  [[nodiscard]] bool is_of_layers() const {
    return each_window || !each_from.empty() || each_listed || each_over.has_value() || each_entry;
  }
  std::vector<SizeShown> shown_by;  ///< the first that is there counts
};

}  // namespace shardwright
