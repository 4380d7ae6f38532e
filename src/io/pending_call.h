// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace shardwright {

/// While one lives, its thread waits for the file system.
class PendingCall {
 public:
  /// `what`: `a read`, a literal. Borrows `name`, of a file or folder. One at a time on a thread.
  PendingCall(const char* what, const std::string& name);
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;
};

/// A call that has not returned yet.
struct LongCall {
  std::string what;
  std::string name;
  std::chrono::steady_clock::duration time{};
};

/// The call of this process that has lasted longest; nothing where none is pending. For any thread.
[[nodiscard]] std::optional<LongCall> longest_call();

}  // namespace shardwright
