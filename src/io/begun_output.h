// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/intrusive_list.h"

namespace shardwright {

/// An output that is not in its place yet. The process may have to end without unwinding:
/// libraries' destructors allocate, and what those throw ends it. Then abandon_all() takes back
/// what was begun. From several threads.
class BegunOutput : public InIntrusiveList<BegunOutput> {
 public:
  BegunOutput(const BegunOutput&) = delete;
  BegunOutput& operator=(const BegunOutput&) = delete;

  /// Has no memory. The process is to end at once: whoever writes into what is taken back fails.
  static void abandon_all() noexcept;

 protected:
  BegunOutput() noexcept;
  ~BegunOutput() { forget(); }
  /// To be called first in the destructor of what is derived from it.
  void forget() noexcept;

 private:
  /// Removes what was begun, or names it on standard error. Has no memory.
  virtual void abandon() noexcept = 0;
};

}  // namespace shardwright
