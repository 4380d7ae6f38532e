// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/rank_watch.h"

namespace shardwright {

/// What a message is about: each is listened to apart.
enum class Channel : std::uint8_t { kPieces, kJobs, kReading };

struct SessionOptions {
  /// A rank that gives no sign for so long is lost.
  std::chrono::milliseconds timeout{60'000};
  /// How often a rank gives one.
  std::chrono::milliseconds beat{1'000};
  /// How long the others get to stop once one has failed; work that still runs after twice that
  /// ends with its process.
  std::chrono::milliseconds patience{2'000};
  std::string host;     ///< of this rank, for messages
  std::string request;  ///< what this rank was asked for: all must be asked for the same
  /// Whether this rank's work has hung although it talks: why. Asked often; may be empty.
  std::function<std::optional<Error>()> find_hung;
  /// Told why, before abort() ends the job; may be empty.
  std::function<void(const Error&)> last_words;
};

/// The ranks of a job that do one thing together: rank 0 leads. They fail together, whatever fails:
/// an error, a rank that is gone and one that hangs end all of them. No call waits in silence: who
/// waits gives signs of life and listens for them. Made and used by one thread, which talks; what
/// is said to be for any thread is for those that work meanwhile.
class RankSession {
 public:
  RankSession(Communicator& communicator, SessionOptions options);

  [[nodiscard]] int rank() const { return communicator_.rank(); }
  [[nodiscard]] int size() const { return communicator_.size(); }
  [[nodiscard]] bool is_first() const { return rank() == 0; }
  /// `rank 3 on HOST`. For any thread.
  [[nodiscard]] std::string name_of(int rank) const;

  /// Does `body` on another thread and talks meanwhile. The error is that of whoever failed first;
  /// kRankLost for a rank that gave no sign.
  [[nodiscard]] Status run(const std::function<Status()>& body);
  /// To be called last, with how this rank's work went: tells the others, and waits until all are
  /// through. The exit status is rank 0's; the error that of who failed first, for rank 0 as it
  /// gives it: what run() returned, with what it has to add.
  [[nodiscard]] Result<int> settle(Result<int> result);
  /// After settle(): some rank did not stop, so that only Communicator::abort ends it.
  [[nodiscard]] bool must_abort() const { return must_abort_; }

  /// Sends what the other rank's on_message() gets. For any thread.
  void send(int to, Channel channel, std::string_view bytes);
  /// Who gets what other ranks send, on the thread that talks; what came before is kept for it. An
  /// error fails all ranks. May be empty. For any thread.
  void on_message(Channel channel,
                  std::function<Status(int from, std::string_view bytes)> receiver);
  /// All ranks stop. The first error counts. For any thread.
  void fail(Error error);
  /// Set when all are to stop. For any thread.
  [[nodiscard]] const std::atomic<bool>& stopped() const { return stopped_; }
  /// A flag that a signal sets: it stops all ranks, and nobody is waited for long from then on, as
  /// whoever sent it kills soon. Null: none. For any thread.
  void obey(const std::atomic<bool>* interrupted) { interrupted_ = interrupted; }
  /// What is left on the disk if this process must end at once, and what may be beside it; empty:
  /// nothing. For any thread.
  void set_leftover(std::string path, std::string beside = {});
  /// What is done where rank 0 is lost, before the job ends, so that rank 0 can't go on with what
  /// is left if it was only stopped. Gives what is left then, instead of what set_leftover() says;
  /// empty: nothing. It runs on a thread of its own and is waited for as long as work that still
  /// runs. For any thread.
  void set_withdrawal(std::function<std::string()> withdraw);
  /// Waits, when all are to stop, until the others have, as long as that may take. REQUIRES: run()
  /// talks. For any thread.
  void wait_until_others_stopped();
  /// What becomes of the others no longer matters: they have done their part. For any thread.
  void release_others();
  /// The others end all ranks where rank 0 gives no sign of life, be it only that its process was
  /// stopped. If that may have happened asks whether they are still there, so that nothing becomes
  /// visible of a job that has failed. Whoever was told to end by a signal waits for no answer.
  /// REQUIRES: this is rank 0, and run() talks. For any thread. Error: kRankLost.
  [[nodiscard]] Status confirm();
  /// The same where there is no time to ask: who was silent for so long that it may be taken for
  /// lost, is. For any thread. Error: kRankLost.
  [[nodiscard]] Status check_heard() const;
  /// Whether the flag of obey() is set. For any thread.
  [[nodiscard]] bool is_interrupted() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Outgoing {
    int to;
    std::string bytes;
  };
  struct Incoming {
    std::vector<ReceivedMessage> kept;
    std::function<Status(int, std::string_view)> receiver;
  };
  static constexpr std::size_t kChannels = 3;

  void talk();
  [[nodiscard]] Status listen();
  [[nodiscard]] Status take_in(const ReceivedMessage& message);
  [[nodiscard]] Status take_hello(int from, std::string_view bytes);
  [[nodiscard]] Status hand_over(std::size_t channel, ReceivedMessage message);
  void watch(Clock::time_point now);
  void announce_failure();
  [[nodiscard]] Status send_all();
  void tell_others(const std::string& bytes);
  void name_leftover();
  [[nodiscard]] std::string leftover() const;  // REQUIRES: mutex_ is held
  void withdraw();
  void abort_now(Error error);
  [[nodiscard]] std::optional<Error> failure() const;
  [[nodiscard]] bool failed_for(std::chrono::milliseconds time) const;
  /// Talks until `is_over` or all patience is gone.
  void talk_until(const std::function<bool()>& is_over);
  [[nodiscard]] bool others_stopped() const;
  void note_silence(Clock::time_point now);
  // REQUIRES: the lock.
  [[nodiscard]] bool may_be_given_up(Clock::time_point now) const;
  [[nodiscard]] std::chrono::milliseconds patience() const;

  Communicator& communicator_;
  SessionOptions options_;
  Clock::time_point next_beat_;
  bool announced_ = false;
  bool must_abort_ = false;
  bool was_told_to_end_ = false;
  int exit_status_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wakes_;
  RankWatch watch_;
  std::vector<std::string> hosts_;
  std::vector<Outgoing> outgoing_;
  std::array<Incoming, kChannels> incoming_;  // by channel
  std::optional<Error> error_;
  Clock::time_point failed_at_;
  std::string leftover_;
  std::string beside_leftover_;
  std::function<std::string()> withdraw_;
  bool aborted_ = false;
  Clock::time_point talked_;  // the last turn
  bool was_silent_ = false;   // for long, and nobody has answered since
  int answers_ = 0;           // to the question of confirm()
  std::atomic<bool> stopped_{false};
  std::atomic<bool> released_{false};
  std::atomic<bool> was_interrupted_{false};
  std::atomic<const std::atomic<bool>*> interrupted_{nullptr};
};

}  // namespace shardwright
