// SPDX-License-Identifier: Apache-2.0
#include "convert/piece_helper.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/message.h"
#include "convert/conversion_output.h"
#include "convert/shared_messages.h"
#include "convert/unfinished_work.h"
#include "exec/execute.h"
#include "io/partial_outputs.h"
#include "io/withdrawal.h"

namespace shardwright {
namespace {

constexpr auto kHelperPause = std::chrono::milliseconds(20);

std::uint8_t kind_of(SharedMessage message) { return static_cast<std::uint8_t>(message); }

// What rank 0 hands out, as it comes.
class HandedOut final : public PieceQueue {
 public:
  explicit HandedOut(RankSession& session) : session_(session) {
    session_.on_message(Channel::kPieces,
                        [this](int, std::string_view bytes) { return take_in(bytes); });
  }
  ~HandedOut() override { session_.on_message(Channel::kPieces, {}); }
  HandedOut(const HandedOut&) = delete;
  HandedOut& operator=(const HandedOut&) = delete;

  // A folder that is written, or was.
  struct Beginning {
    std::string folder;
    std::uint64_t piece_bytes = 0;
    std::string target = {};  // what it is to be, if nothing is there
  };
  // What is to be read back first, if anything.
  [[nodiscard]] std::optional<Beginning> wait_for_read_back() {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return read_back_ || !folder_.empty(); });
    return read_back_;
  }
  [[nodiscard]] Result<Beginning> wait_for_beginning() {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return beginning_.has_value(); });
    if (!beginning_) return fail(Code::kCancelled, "stopped before anything was to be written");
    return *beginning_;
  }

  std::optional<std::uint32_t> take() override {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return !pieces_.empty() || has_all_; });
    if (pieces_.empty() || is_closed_) return std::nullopt;
    const std::uint32_t piece = pieces_.front();
    pieces_.pop_front();
    return piece;
  }
  Status finish(std::uint32_t piece, PieceCrcs crcs) override {
    session_.send(0, Channel::kPieces,
                  MessageWriter(kind_of(SharedMessage::kDone)).number(piece).numbers(crcs).take());
    return {};
  }
  void close() override {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

 private:
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    while (!condition() && !is_closed_ && !session_.stopped()) {
      changed_.wait_for(lock, kHelperPause);
    }
  }

  Status take_in(std::string_view bytes) {
    MessageReader reader(bytes);
    const std::scoped_lock lock(mutex_);
    switch (static_cast<SharedMessage>(SW_TRY(reader.kind()))) {
      case SharedMessage::kReadBack: {
        std::string folder = SW_TRY(reader.text());
        read_back_ = Beginning{std::move(folder), SW_TRY(reader.number())};
        break;
      }
      case SharedMessage::kFolder:
        folder_ = SW_TRY(reader.text());
        session_.set_leftover(folder_, journals_path(folder_));
        target_ = SW_TRY(reader.text());
        session_.send(0, Channel::kPieces, MessageWriter(kind_of(SharedMessage::kKnown)).take());
        break;
      case SharedMessage::kBegin:
        beginning_ = Beginning{folder_, SW_TRY(reader.number()), target_};
        break;
      case SharedMessage::kPieces:
        for (const std::uint32_t piece : SW_TRY(reader.numbers())) pieces_.push_back(piece);
        break;
      case SharedMessage::kNoMore:
        has_all_ = true;
        break;
      default:
        return fail(Code::kInternal, "rank 0: a message of no known kind");
    }
    changed_.notify_all();
    return {};
  }

  RankSession& session_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::string folder_;
  std::string target_;
  std::optional<Beginning> read_back_;
  std::optional<Beginning> beginning_;
  std::deque<std::uint32_t> pieces_;
  bool has_all_ = false;
  bool is_closed_ = false;
};

// What replaces something is not taken away from rank 0, which may have removed the half of that.
void take_away_if_lost(RankSession& session, const HandedOut::Beginning& beginning) {
  if (beginning.target.empty()) return;
  const auto output = std::make_shared<Withdrawal>(beginning.folder, beginning.target);
  session.set_withdrawal([output] { return output->withdraw().value_or(""); });
}

Result<std::unique_ptr<Directory>> open_shared_folder(const std::string& folder) {
  auto directory = open_local_directory(folder);
  if (directory) return directory;
  Error error = std::move(directory).error();
  error.message += translated("; OUT must lie on a file system that all ranks share");
  return std::unexpected(std::move(error));
}

Status do_pieces(const PreparedConversion& conversion, HandedOut& queue, RankSession& session,
                 const RunOptions& run, PayloadDigests* digests) {
  const Plan& plan = conversion.plan;
  SourceFiles& files = *conversion.source.files;
  ExecuteOptions options = SW_TRY(execute_options(conversion, run));
  options.digests = digests;
  const HandedOut::Beginning beginning = SW_TRY(queue.wait_for_beginning());
  const std::unique_ptr<Directory> folder = SW_TRY(open_shared_folder(beginning.folder));
  take_away_if_lost(session, beginning);
  const PieceList pieces(plan, beginning.piece_bytes);
  TargetFiles target(plan, *folder);
  const TargetFraming framing(plan, target);
  SW_TRY(execute_pieces(plan, pieces, files, target, framing, queue, options));
  if (session.stopped()) {
    return fail(Code::kCancelled, "stopped before the checkpoint was complete");
  }
  SW_TRY(target.sync(options.threads));
  SW_TRY(files.check_unchanged());
  session.send(0, Channel::kPieces,
               MessageWriter(kind_of(SharedMessage::kDurable))
                   .number(files.bytes_read())
                   .number(files.opens())
                   .text(digests == nullptr ? std::string() : digests->message())
                   .take());
  if (hashes_output(conversion.request)) SW_TRY(hash_output(conversion, run, *folder));
  return {};
}

}  // namespace

Status help_with_conversion(const PreparedConversion& conversion, RankSession& session,
                            JobSharing& jobs) {
  HandedOut queue(session);
  RunOptions options;
  options.cancelled = &session.stopped();
  options.sharing = &jobs;
  return session.run([&]() -> Status {
    const std::string summary = SW_TRY(plan_summary(conversion));
    session.send(0, Channel::kPieces,
                 MessageWriter(kind_of(SharedMessage::kPlan)).text(summary).take());
    SW_TRY(compare_source(conversion, options));
    const std::unique_ptr<PayloadDigests> digests = digests_for(conversion);
    if (const auto earlier = queue.wait_for_read_back()) {
      SW_TRY(help_reading_back(conversion, earlier->folder, earlier->piece_bytes, options,
                               digests.get()));
    }
    return do_pieces(conversion, queue, session, options, digests.get());
  });
}

}  // namespace shardwright
