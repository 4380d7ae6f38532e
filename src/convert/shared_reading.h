// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/rank_session.h"
#include "io/known_bytes.h"
#include "remote/open_path.h"

namespace shardwright {

/// What rank 0 reads while it finds out what is to be done: metadata, headers, the directories of
/// archives. The others wait for it and find out the same from that, so that a rank opens only the
/// files of which it has work to do. Borrows the session; made and destroyed by the thread that
/// talks.
class SharedReading {
 public:
  explicit SharedReading(RankSession& session);
  ~SharedReading();
  SharedReading(const SharedReading&) = delete;
  SharedReading& operator=(const SharedReading&) = delete;

  /// Does `body`. What rank 0 reads in it, up to end(), is told; the others wait for that first. On
  /// the thread that works. Errors: those of `body`; kCancelled when all are to stop.
  [[nodiscard]] Status run(const std::function<Status()>& body);
  /// All is found out that the others need: to be called by `body`, else its end is that.
  void end();

 private:
  [[nodiscard]] Status begin();
  [[nodiscard]] Status take_in(std::string_view bytes);
  void send_on(std::string_view bytes);

  RankSession& session_;
  std::shared_ptr<KnownBytes> known_;
  std::optional<KnownPaths> paths_;
  std::mutex mutex_;
  std::optional<std::string> received_;
};

}  // namespace shardwright
