// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_session.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "base/message.h"

namespace shardwright {
namespace {

// The first byte of a message says what it is.
constexpr std::uint8_t kHello = 'h';   // to rank 0: host, request
constexpr std::uint8_t kAlive = 'a';   // nothing
constexpr std::uint8_t kWork = 'w';    // channel, what on_message() gets
constexpr std::uint8_t kFailed = 'f';  // to rank 0: code, errno, message
constexpr std::uint8_t kStop = 's';    // of rank 0: code, errno, message
constexpr std::uint8_t kOver = 'o';    // of rank 0: exit status
constexpr std::uint8_t kBye = 'b';     // to rank 0: this rank does nothing more
constexpr std::uint8_t kAsk = 'q';     // of rank 0: whether the other is there
constexpr std::uint8_t kHere = 'y';    // to rank 0: it is

constexpr int kAbortStatus = 2;
constexpr auto kPause = std::chrono::milliseconds(5);
// Who was told to end by a signal is killed soon.
constexpr std::chrono::milliseconds kInterruptedPatience{300};
constexpr std::chrono::milliseconds kTimeToSpeak{300};

Status given_up() {
  return fail(Code::kRankLost,
              "rank 0 was stopped for so long that the others took it for lost; run it again, or "
              "allow more (--rank-timeout)");
}

std::string failure_message(std::uint8_t kind, const Error& error) {
  return MessageWriter(kind).error(error).take();
}

// Rank 0 watches all, the others watch rank 0.
std::vector<int> watched_by(int rank, int size) {
  if (rank != 0) return {0};
  std::vector<int> others;
  for (int other = 1; other < size; ++other) others.push_back(other);
  return others;
}

Status run_without_throwing(const std::function<Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return std::unexpected(Error{Code::kOutOfMemory, translated("out of memory"), ENOMEM});
  } catch (const std::exception& exception) {
    return fail(Code::kInternal, "shardwright: {}", exception.what());
  }
}

}  // namespace

RankSession::RankSession(Communicator& communicator, SessionOptions options)
    : communicator_(communicator),
      options_(std::move(options)),
      next_beat_(Clock::now()),
      watch_(communicator.size(), watched_by(communicator.rank(), communicator.size()),
             Clock::now()),
      hosts_(static_cast<std::size_t>(communicator.size())),
      talked_(Clock::now()) {
  hosts_[static_cast<std::size_t>(rank())] = options_.host;
  if (is_first()) return;
  outgoing_.push_back({0, MessageWriter(kHello).text(options_.host).text(options_.request).take()});
}

std::string RankSession::name_of(int rank) const {
  const std::scoped_lock lock(mutex_);
  const std::string& host = hosts_[static_cast<std::size_t>(rank)];
  return host.empty() ? fmt::format("rank {}", rank) : translated("rank {} on {}", rank, host);
}

void RankSession::send(int to, Channel channel, std::string_view bytes) {
  std::string message{static_cast<char>(kWork), static_cast<char>(channel)};
  message += bytes;
  const std::scoped_lock lock(mutex_);
  outgoing_.push_back({to, std::move(message)});
  wakes_.notify_all();
}

void RankSession::on_message(Channel channel,
                             std::function<Status(int, std::string_view)> receiver) {
  const std::scoped_lock lock(mutex_);
  incoming_[static_cast<std::size_t>(channel)].receiver = std::move(receiver);
}

void RankSession::fail(Error error) {
  const std::scoped_lock lock(mutex_);
  if (!error_) {
    error_ = std::move(error);
    failed_at_ = Clock::now();
  }
  stopped_ = true;
  wakes_.notify_all();
}

void RankSession::set_leftover(std::string path, std::string beside) {
  const std::scoped_lock lock(mutex_);
  leftover_ = std::move(path);
  beside_leftover_ = std::move(beside);
}

std::string RankSession::leftover() const {
  if (leftover_.empty() || beside_leftover_.empty()) return leftover_;
  return leftover_ + translated(" and ") + beside_leftover_;
}

void RankSession::release_others() {
  const std::scoped_lock lock(mutex_);
  for (int other = 0; other < size(); ++other) watch_.leave(other);
  released_ = true;
}

// Half of the time, as the others count from the last sign that has reached them.
bool RankSession::may_be_given_up(Clock::time_point now) const {
  return was_silent_ || now - talked_ > options_.timeout / 2;
}

// What the others sent meanwhile has not been heard either: that is not their fault.
void RankSession::note_silence(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (now - talked_ > options_.timeout / 2) {
    was_silent_ = true;
    watch_.restart(now);
  }
  talked_ = now;
}

bool RankSession::is_interrupted() const {
  const std::atomic<bool>* const interrupted = interrupted_;
  return interrupted != nullptr && *interrupted;
}

Status RankSession::check_heard() const {
  const std::scoped_lock lock(mutex_);
  return may_be_given_up(Clock::now()) ? given_up() : Status{};
}

Status RankSession::confirm() {
  std::unique_lock lock(mutex_);
  const Clock::time_point begin = Clock::now();
  if (!may_be_given_up(begin)) return {};
  answers_ = 0;
  const std::string question = MessageWriter(kAsk).take();
  for (int other = 1; other < size(); ++other) outgoing_.push_back({other, question});
  while (answers_ < size() - 1) {
    if (is_interrupted() || aborted_ || Clock::now() - begin > options_.timeout) {
      return given_up();
    }
    wakes_.wait_for(lock, kPause);
  }
  was_silent_ = false;
  return {};
}

std::chrono::milliseconds RankSession::patience() const {
  return was_interrupted_ ? std::min(kInterruptedPatience, options_.patience) : options_.patience;
}

std::optional<Error> RankSession::failure() const {
  const std::scoped_lock lock(mutex_);
  return error_;
}

bool RankSession::failed_for(std::chrono::milliseconds time) const {
  const std::scoped_lock lock(mutex_);
  return error_ && Clock::now() - failed_at_ > time;
}

bool RankSession::others_stopped() const {
  const std::scoped_lock lock(mutex_);
  return watch_.all_left() || aborted_;
}

void RankSession::set_withdrawal(std::function<std::string()> withdraw) {
  const std::scoped_lock lock(mutex_);
  withdraw_ = std::move(withdraw);
}

void RankSession::wait_until_others_stopped() {
  while (!others_stopped() && !failed_for(patience())) std::this_thread::sleep_for(kPause);
}

Status RankSession::run(const std::function<Status()>& body) {
  if (const auto error = failure()) return std::unexpected(*error);
  talk();  // so that the others know this rank before it begins
  Status status;
  std::atomic<bool> is_done{false};
  const auto work = [&] {
    status = run_without_throwing(body);
    // Only now, so that rank 0 has what it needs to know when the others are told to stop.
    if (!status) fail(status.error());
    is_done = true;
    const std::scoped_lock lock(mutex_);
    wakes_.notify_all();
  };
  std::jthread worker;
  try {
    worker = std::jthread(work);
  } catch (const std::system_error&) {
    fail({Code::kOutOfMemory, translated("no memory for a thread"), ENOMEM});
    return std::unexpected(*failure());
  }
  while (!is_done) {
    talk();
    if (failed_for(2 * patience())) abort_now(*failure());
    std::unique_lock lock(mutex_);
    wakes_.wait_for(lock, kPause, [&] { return is_done || !outgoing_.empty(); });
  }
  worker.join();
  talk();
  if (status && released_) return {};
  if (const auto error = failure()) return std::unexpected(*error);
  return status;
}

void RankSession::talk_until(const std::function<bool()>& is_over) {
  while (true) {
    talk();
    if (is_over() || failed_for(patience())) return;
    {
      const std::scoped_lock lock(mutex_);
      if (aborted_) return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

Result<int> RankSession::settle(Result<int> result) {
  if (!result) fail(result.error());
  if (is_first()) {
    if (result)
      tell_others(MessageWriter(kOver).number(static_cast<std::uint64_t>(*result)).take());
    talk_until([&] { return others_stopped(); });
    if (!result) must_abort_ = !others_stopped() || must_abort_;
    return result;
  }
  talk_until([&] { return was_told_to_end_; });
  must_abort_ = !was_told_to_end_;
  if (must_abort_) name_leftover();
  tell_others(MessageWriter(kBye).take());
  const auto deadline = Clock::now() + patience();
  talk_until([&] {
    const auto sent = communicator_.has_sent_all();
    return !sent || *sent || Clock::now() > deadline;
  });
  if (const auto error = failure()) return std::unexpected(*error);
  return exit_status_;
}

// One turn: hears, beats, watches, sends.
void RankSession::talk() {
  Status status = listen();
  if (!status) fail(std::move(status).error());
  if (is_interrupted() && !released_) {
    was_interrupted_ = true;
    fail({Code::kCancelled, translated("stopped before the work was complete"), 0});
  }
  const Clock::time_point now = Clock::now();
  note_silence(now);
  if (now >= next_beat_) {
    next_beat_ = now + options_.beat;
    tell_others(MessageWriter(kAlive).take());
  }
  if (options_.find_hung && !failure()) {
    if (std::optional<Error> hung = options_.find_hung()) fail(*std::move(hung));
  }
  watch(now);
  announce_failure();
  status = send_all();
  if (!status) fail(std::move(status).error());
}

void RankSession::tell_others(const std::string& bytes) {
  const std::scoped_lock lock(mutex_);
  if (!is_first()) {
    outgoing_.push_back({0, bytes});
    return;
  }
  for (int other = 1; other < size(); ++other) outgoing_.push_back({other, bytes});
}

Status RankSession::send_all() {
  std::vector<Outgoing> outgoing;
  {
    const std::scoped_lock lock(mutex_);
    outgoing.swap(outgoing_);
  }
  for (Outgoing& message : outgoing) {
    SW_TRY(communicator_.send(message.to, std::move(message.bytes)));
  }
  return {};
}

Status RankSession::listen() {
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    std::vector<ReceivedMessage> kept;
    {
      const std::scoped_lock lock(mutex_);
      if (incoming_[channel].receiver) kept.swap(incoming_[channel].kept);
    }
    for (ReceivedMessage& message : kept) SW_TRY(hand_over(channel, std::move(message)));
  }
  while (true) {
    const std::optional<ReceivedMessage> message = SW_TRY(communicator_.receive());
    if (!message) return {};
    {
      const std::scoped_lock lock(mutex_);
      watch_.hear(message->from, Clock::now());
    }
    SW_TRY(take_in(*message));
  }
}

Status RankSession::take_in(const ReceivedMessage& message) {
  MessageReader reader(message.bytes);
  switch (SW_TRY(reader.kind())) {
    case kAlive:
      return {};
    case kHello:
      return take_hello(message.from, message.bytes);
    case kWork: {
      const std::size_t channel = SW_TRY(reader.kind());
      if (channel < kChannels) {
        return hand_over(channel, {message.from, message.bytes.substr(2)});
      }
      break;
    }
    case kFailed:
      if (!released_) fail(SW_TRY(reader.error()).within(name_of(message.from)));
      return {};
    case kStop:
      was_told_to_end_ = true;
      announced_ = true;
      fail(SW_TRY(reader.error()));
      return {};
    case kOver:
      was_told_to_end_ = true;
      exit_status_ = static_cast<int>(SW_TRY(reader.number()));
      return {};
    case kBye: {
      const std::scoped_lock lock(mutex_);
      watch_.leave(message.from);
      return {};
    }
    case kAsk:
      tell_others(MessageWriter(kHere).take());
      return {};
    case kHere: {
      const std::scoped_lock lock(mutex_);
      ++answers_;
      wakes_.notify_all();
      return {};
    }
    default:
      break;
  }
  return shardwright::fail(Code::kInternal, "{}: a message of no known kind",
                           name_of(message.from));
}

Status RankSession::take_hello(int from, std::string_view bytes) {
  MessageReader reader(bytes);
  SW_TRY(reader.kind());
  {
    std::string host = SW_TRY(reader.text());
    const std::scoped_lock lock(mutex_);
    hosts_[static_cast<std::size_t>(from)] = std::move(host);
  }
  if (SW_TRY(reader.text()) == options_.request) return {};
  return shardwright::fail(Code::kRanksDiffer,
                           "{} was started with other arguments, or is another version, than "
                           "rank 0; start all ranks with the same command line",
                           name_of(from));
}

Status RankSession::hand_over(std::size_t channel, ReceivedMessage message) {
  std::function<Status(int, std::string_view)> receiver;
  {
    const std::scoped_lock lock(mutex_);
    Incoming& incoming = incoming_[channel];
    // What was kept comes first.
    if (!incoming.receiver || !incoming.kept.empty()) {
      incoming.kept.push_back(std::move(message));
      return {};
    }
    receiver = incoming.receiver;
  }
  return receiver(message.from, message.bytes);
}

void RankSession::watch(Clock::time_point now) {
  std::optional<int> lost;
  {
    const std::scoped_lock lock(mutex_);
    lost = watch_.silent(options_.timeout, now);
    if (lost) watch_.leave(*lost);
  }
  if (!lost) return;
  Error error{Code::kRankLost,
              translated("{} gave no sign of life for {} s; look at its node, or allow more "
                         "(--rank-timeout)",
                         name_of(*lost), options_.timeout.count() / 1000),
              0};
  must_abort_ = true;
  // Nobody is left who could tell the others.
  if (!is_first()) {
    announced_ = true;
    if (*lost == 0) withdraw();
    abort_now(error);
  }
  fail(std::move(error));
}

void RankSession::announce_failure() {
  const std::optional<Error> error = failure();
  if (!error || announced_) return;
  announced_ = true;
  tell_others(failure_message(is_first() ? kStop : kFailed, *error));
}

// Rank 0, which removes what it began, is gone without a word. One of the others says it for all,
// before any of them ends: a launcher kills the rest as soon as the first of those that it
// signalled has ended.
void RankSession::name_leftover() {
  std::string path;
  {
    const std::scoped_lock lock(mutex_);
    if (!aborted_) path = leftover();
  }
  if (path.empty() || !options_.last_words) return;
  if (rank() != 1) {
    std::this_thread::sleep_for(kTimeToSpeak);
    return;
  }
  options_.last_words(
      {Code::kRankLost, translated("rank 0 has ended; remove what is left of {}", path), 0});
}

void RankSession::withdraw() {
  std::function<std::string()> work;
  std::string known;
  {
    const std::scoped_lock lock(mutex_);
    work = withdraw_;
    known = leftover_;
  }
  if (!work) return;
  // A file system that hangs is left to the end of the process: what the thread has is its own.
  const auto left = std::make_shared<std::promise<std::string>>();
  std::future<std::string> told = left->get_future();
  const auto tell = [left, work, known] {
    std::string now = known;
    [[maybe_unused]] const Status ended = run_without_throwing([&]() -> Status {
      now = work();
      return {};
    });
    left->set_value(now);
  };
  try {
    std::thread(tell).detach();
  } catch (const std::system_error&) {
    return;  // no memory for a thread
  }
  if (told.wait_for(2 * options_.patience) != std::future_status::ready) return;
  const std::scoped_lock lock(mutex_);
  leftover_ = told.get();
}

void RankSession::abort_now(Error error) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(aborted_, true)) return;
    if (!leftover_.empty()) error.message += translated("; remove what is left of {}", leftover());
  }
  must_abort_ = true;
  if (options_.last_words) options_.last_words(error);
  communicator_.abort(kAbortStatus);
}

}  // namespace shardwright
