// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardwright {

/// What a format finds out of an opened checkpoint and several of its answers need: found when it
/// is needed first, once. Thread-safe.
class FormatFindings {
 public:
  FormatFindings() = default;
  virtual ~FormatFindings() = default;
  FormatFindings(const FormatFindings&) = delete;
  FormatFindings& operator=(const FormatFindings&) = delete;
};

}  // namespace shardwright
