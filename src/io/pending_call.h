// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "io/intrusive_list.h"

namespace shardwright {

/// A call that has not returned yet.
struct LongCall {
  std::string what;
  std::string name;
  std::chrono::steady_clock::duration time{};
};

/// The call of this process that has lasted longest; nothing where none is pending. For any thread.
[[nodiscard]] std::optional<LongCall> longest_call();

/// While one lives, its thread waits for the file system. It needs no memory of its own.
class PendingCall : public InIntrusiveList<PendingCall> {
 public:
  /// `what`: `a read`, a literal. Borrows `name`, of a file or folder.
  PendingCall(const char* what, const std::string& name);
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;
  /// The call has returned, and the next of its kind begins.
  void renew() noexcept;

 private:
  friend std::optional<LongCall> longest_call();

  const char* what_;
  const std::string* name_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace shardwright
