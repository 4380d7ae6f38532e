// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shardwright/error.h"

namespace shardwright {

/// What a rank was sent.
struct ReceivedMessage {
  int from = 0;
  std::string bytes;
};

/// How the processes ("ranks") of one job tell each other things. Nothing of it waits. To be used
/// by one thread at a time, the one that made it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Begins to send; what is sent from one rank to another arrives in that order.
  [[nodiscard]] virtual Status send(int to, std::string bytes) = 0;
  /// A message that has arrived; nothing where none has.
  [[nodiscard]] virtual Result<std::optional<ReceivedMessage>> receive() = 0;
  /// Whether everything that was to be sent is on its way, so that this rank may end.
  [[nodiscard]] virtual Result<bool> has_sent_all() = 0;
  /// Ends all ranks at once, those too that hang. May return.
  virtual void abort(int exit_status) = 0;
};

}  // namespace shardwright
