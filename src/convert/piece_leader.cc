// SPDX-License-Identifier: Apache-2.0
#include "convert/piece_leader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "convert/conversion_output.h"
#include "convert/shared_messages.h"
#include "io/partial_outputs.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kPiecesOfARank = 8;
// What a rank has in advance, so that it works while it asks: little, as what a slow one has nobody
// else does.
constexpr std::uint32_t kAheadPieces = 2;
constexpr std::uint64_t kAheadBytes = std::uint64_t{32} << 20;
constexpr auto kLeaderPause = std::chrono::milliseconds(20);

std::string leader_message(SharedMessage kind) {
  return MessageWriter(static_cast<std::uint8_t>(kind)).take();
}

}  // namespace

PieceLeader::PieceLeader(const PreparedConversion& conversion, RankSession& session,
                         std::uint64_t least_piece_bytes)
    : conversion_(conversion),
      session_(session),
      least_piece_bytes_(least_piece_bytes),
      owed_(static_cast<std::size_t>(session.size())) {}

PieceLeader::~PieceLeader() { session_.on_message(Channel::kPieces, {}); }

Status PieceLeader::wait(std::unique_lock<std::mutex>& lock,
                         const std::function<bool()>& condition) {
  while (!condition()) {
    if (session_.stopped() || is_closed_) {
      return fail(Code::kCancelled, "stopped before the checkpoint was complete");
    }
    changed_.wait_for(lock, kLeaderPause);
  }
  return {};
}

Status PieceLeader::check_server(const std::string& output) const {
  return fail(Code::kUsage,
              "{}: several ranks write to a folder that all of them see; choose a local path, or "
              "run it without ranks",
              printable(output));
}

Status PieceLeader::agree() {
  summary_ = SW_TRY(plan_summary(conversion_));
  session_.on_message(Channel::kPieces,
                      [this](int from, std::string_view bytes) { return take_in(from, bytes); });
  std::unique_lock lock(mutex_);
  return wait(lock, [&] { return planned_ == session_.size() - 1; });
}

std::uint64_t PieceLeader::piece_bytes(std::uint64_t alone, std::uint64_t total_bytes) const {
  const std::uint64_t count = kPiecesOfARank * static_cast<std::uint64_t>(session_.size());
  return std::min(alone, std::max(total_bytes / count, least_piece_bytes_));
}

void PieceLeader::read_back(const std::string& folder, std::uint64_t piece_bytes) {
  for (int rank = 1; rank < session_.size(); ++rank) {
    session_.send(rank, Channel::kPieces,
                  MessageWriter(static_cast<std::uint8_t>(SharedMessage::kReadBack))
                      .text(folder)
                      .number(piece_bytes)
                      .take());
  }
}

void PieceLeader::ask_of(PublishOptions& publish) const {
  publish.may_appear = [this] { return may_appear(); };
  publish.may_stay = [this] { return session_.check_heard(); };
}

Status PieceLeader::set_output(const Publication& output, std::uint64_t piece_bytes) {
  piece_bytes_ = piece_bytes;
  const std::string& folder = output.partial_path();
  const std::string target = output.replaces() ? std::string() : output.target_path();
  session_.set_leftover(folder, journals_path(folder));
  // At once: if this rank hangs, the others name what it leaves.
  for (int rank = 1; rank < session_.size(); ++rank) {
    session_.send(rank, Channel::kPieces,
                  MessageWriter(static_cast<std::uint8_t>(SharedMessage::kFolder))
                      .text(folder)
                      .text(target)
                      .take());
  }
  std::unique_lock lock(mutex_);
  return wait(lock, [&] { return knowing_ == session_.size() - 1; });
}

Coworkers::Read PieceLeader::read() const {
  const std::scoped_lock lock(mutex_);
  return read_;
}

Status PieceLeader::begin(const PieceList& pieces, WholeRun& run) {
  const std::scoped_lock lock(mutex_);
  pieces_ = &pieces;
  run_ = &run;
  std::vector<std::uint32_t> todo;
  for (std::uint32_t piece = 0; piece < pieces.size(); ++piece) {
    if (!run.finished[piece]) todo.push_back(piece);
  }
  unfinished_ = static_cast<std::uint32_t>(todo.size());
  shares_ = shares_of_pieces(pieces, std::move(todo), session_.size());
  for (int rank = 1; rank < session_.size(); ++rank) {
    session_.send(rank, Channel::kPieces,
                  MessageWriter(static_cast<std::uint8_t>(SharedMessage::kBegin))
                      .number(piece_bytes_)
                      .take());
    top_up(rank);
  }
  return {};
}

// REQUIRES: the lock.
void PieceLeader::top_up(int rank) {
  Owed& owed = owed_[static_cast<std::size_t>(rank)];
  std::vector<std::uint32_t> more;
  while (!owed.has_all && (owed.pieces < kAheadPieces || owed.bytes < kAheadBytes)) {
    // Nothing is taken from another for later.
    const bool needs_one = owed.pieces < kAheadPieces;
    const auto piece = needs_one ? shares_->take(rank) : shares_->take_own(rank);
    owed.has_all = needs_one && !piece;
    if (!piece) break;
    more.push_back(*piece);
    ++owed.pieces;
    owed.bytes += pieces_->bytes(*piece);
  }
  if (!more.empty()) {
    session_.send(
        rank, Channel::kPieces,
        MessageWriter(static_cast<std::uint8_t>(SharedMessage::kPieces)).numbers(more).take());
  }
  if (owed.has_all) session_.send(rank, Channel::kPieces, leader_message(SharedMessage::kNoMore));
}

std::optional<std::uint32_t> PieceLeader::take() {
  std::unique_lock lock(mutex_);
  if (is_closed_) return std::nullopt;
  if (const auto piece = shares_->take(0)) return piece;
  // Whoever follows this run sees it go on, until the others are through too.
  [[maybe_unused]] const Status ended = wait(lock, [&] { return unfinished_ == 0; });
  return std::nullopt;
}

Status PieceLeader::finish(std::uint32_t piece, PieceCrcs crcs) {
  return note(piece, std::move(crcs));
}

void PieceLeader::close() {
  const std::scoped_lock lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

Status PieceLeader::note(std::uint32_t piece, PieceCrcs crcs) {
  if (run_->on_finished) SW_TRY(run_->on_finished(piece, crcs));
  const std::scoped_lock lock(mutex_);
  run_->finished[piece] = std::move(crcs);
  --unfinished_;
  changed_.notify_all();
  return {};
}

Status PieceLeader::finish() {
  {
    std::unique_lock lock(mutex_);
    SW_TRY(wait(lock, [&] { return durable_ == session_.size() - 1; }));
  }
  if (!hashes_output(conversion_.request)) session_.release_others();
  return {};
}

Status PieceLeader::let_go() {
  SW_TRY(may_appear());  // or nothing could go on with what is left
  session_.release_others();
  return {};
}

Status PieceLeader::may_appear() const {
  SW_TRY(session_.confirm());
  if (!session_.is_interrupted()) return {};
  return fail(Code::kCancelled, "stopped before the checkpoint was published");
}

void PieceLeader::stop(const Error& error) {
  session_.fail(error);
  session_.wait_until_others_stopped();
}

Status PieceLeader::take_in(int from, std::string_view bytes) {
  MessageReader reader(bytes);
  switch (static_cast<SharedMessage>(SW_TRY(reader.kind()))) {
    case SharedMessage::kPlan: {
      if (SW_TRY(reader.text()) != summary_) {
        return fail(Code::kRanksDiffer,
                    "{} has planned something else than rank 0: its source files have other sizes "
                    "or times, or its program another version; all ranks must see the same files",
                    session_.name_of(from));
      }
      const std::scoped_lock lock(mutex_);
      ++planned_;
      changed_.notify_all();
      return {};
    }
    case SharedMessage::kKnown: {
      const std::scoped_lock lock(mutex_);
      ++knowing_;
      changed_.notify_all();
      return {};
    }
    case SharedMessage::kDone:
      return take_done(from, reader);
    case SharedMessage::kDurable: {
      const std::uint64_t read = SW_TRY(reader.number());
      const std::uint64_t opens = SW_TRY(reader.number());
      const std::string digests = SW_TRY(reader.text());
      if (digests_ != nullptr) SW_TRY(digests_->take(digests));
      const std::scoped_lock lock(mutex_);
      read_.bytes += read;
      read_.opens += opens;
      ++durable_;
      changed_.notify_all();
      return {};
    }
    default:
      return fail(Code::kInternal, "{}: a message of no known kind", session_.name_of(from));
  }
}

Status PieceLeader::take_done(int from, MessageReader& reader) {
  const std::uint64_t piece = SW_TRY(reader.number());
  PieceCrcs crcs = SW_TRY(reader.numbers());
  {
    const std::scoped_lock lock(mutex_);
    if (pieces_ == nullptr || piece >= pieces_->size() || run_->finished[piece]) {
      return fail(Code::kInternal, "{}: piece {} was not to be done", session_.name_of(from),
                  piece);
    }
    const std::uint64_t bytes = pieces_->bytes(static_cast<std::uint32_t>(piece));
    Owed& owed = owed_[static_cast<std::size_t>(from)];
    --owed.pieces;
    owed.bytes -= bytes;
    bytes_done_ += bytes;
  }
  SW_TRY(note(static_cast<std::uint32_t>(piece), std::move(crcs)));
  const std::scoped_lock lock(mutex_);
  if (!owed_[static_cast<std::size_t>(from)].has_all) top_up(from);
  return {};
}

}  // namespace shardwright
