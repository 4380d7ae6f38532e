// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "canonical/adapter_updates.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// An adapter that is merged, and what it does to the model.
struct TakenAdapter {
  PeftAdapter adapter;
  AdapterUpdates updates;
  std::uint32_t file = 0;  ///< of its tensors, in the source's catalogs
  /// What the base's packed tensors are stored as, by the model's names.
  std::unordered_map<std::string, std::string> packed;

  /// One of its tensors as the source's catalogs have it. Names stay: no model's begin as an
  /// adapter's.
  [[nodiscard]] StoredTensor stored(std::uint32_t tensor) const;
};

}  // namespace shardwright
