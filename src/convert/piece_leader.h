// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "comm/rank_session.h"
#include "convert/piece_shares.h"
#include "exec/piece_sharing.h"
#include "io/publish.h"
#include "shardwright/convert.h"

namespace shardwright {

/// Rank 0 of a conversion that several ranks do: hands out pieces, hears which are finished, and
/// does some itself. Borrows all it is given; made and destroyed by the thread that talks.
class PieceLeader final : public PieceSharing, private PieceQueue {
 public:
  /// What the others read.
  struct Read {
    std::uint64_t bytes = 0;
    std::uint64_t opens = 0;
  };

  PieceLeader(const PreparedConversion& conversion, RankSession& session,
              std::uint64_t least_piece_bytes);
  ~PieceLeader() override;
  PieceLeader(const PieceLeader&) = delete;
  PieceLeader& operator=(const PieceLeader&) = delete;

  /// Waits until all ranks have planned the same. To be called before anything is written. Error:
  /// kRanksDiffer.
  [[nodiscard]] Status agree();
  /// How large pieces may be so that each rank gets several.
  [[nodiscard]] std::uint64_t most_piece_bytes(std::uint64_t total_bytes) const;
  /// What lies in a folder is read back by all. To be called before set_output(), if at all.
  void read_back(const std::string& folder, std::uint64_t piece_bytes);
  /// Where all write, and what they take away if this rank is lost. Waits until all know. To be
  /// called before begin().
  [[nodiscard]] Status set_output(const Publication& output, std::uint64_t piece_bytes);
  [[nodiscard]] std::uint64_t bytes_done_by_others() const { return bytes_done_; }
  [[nodiscard]] Read read() const;
  /// Who gets what the others know of digests, when finish() returns; null: nobody. To be called
  /// before set_output().
  void gather(PayloadDigests* digests) { digests_ = digests; }
  /// What the others have to do is done: what is written is hashed too, if it is to be.
  void release() { session_.release_others(); }
  /// Asked when all is written. Errors: kRankLost, kCancelled.
  [[nodiscard]] Status may_appear() const;
  /// Asked when it is in its place. Error: kRankLost.
  [[nodiscard]] Status may_stay() const { return session_.check_heard(); }

  [[nodiscard]] Status begin(const PieceList& pieces, WholeRun& run) override;
  [[nodiscard]] PieceQueue& queue() override { return *this; }
  [[nodiscard]] Status finish() override;
  void stop(const Error& error) override;

 private:
  // What a rank has to do and has not told of yet.
  struct Owed {
    std::uint32_t pieces = 0;
    std::uint64_t bytes = 0;
    bool has_all = false;  // it knows that no more will come
  };

  [[nodiscard]] std::optional<std::uint32_t> take() override;
  [[nodiscard]] Status finish(std::uint32_t piece, PieceCrcs crcs) override;
  void close() override;

  [[nodiscard]] Status take_in(int from, std::string_view bytes);
  [[nodiscard]] Status take_done(int from, MessageReader& reader);
  [[nodiscard]] Status note(std::uint32_t piece, PieceCrcs crcs);
  void top_up(int rank);
  // REQUIRES: the lock. Error: kCancelled when all are to stop.
  [[nodiscard]] Status wait(std::unique_lock<std::mutex>& lock,
                            const std::function<bool()>& condition);

  const PreparedConversion& conversion_;
  RankSession& session_;
  std::uint64_t least_piece_bytes_;
  PayloadDigests* digests_ = nullptr;
  std::string summary_;
  std::uint64_t piece_bytes_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  int planned_ = 0;  // ranks that have planned the same
  int knowing_ = 0;  // ranks that know the hidden folder
  int durable_ = 0;  // ranks of which all is durable
  const PieceList* pieces_ = nullptr;
  WholeRun* run_ = nullptr;
  std::optional<PieceShares> shares_;
  std::uint32_t unfinished_ = 0;
  std::vector<Owed> owed_;  // by rank
  Read read_;
  bool is_closed_ = false;
  std::atomic<std::uint64_t> bytes_done_{0};
};

/// Prepares nothing, writes and publishes all: run_conversion with others, if `leader` is not null.
[[nodiscard]] Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                                   const RunOptions& options, PieceLeader* leader);

}  // namespace shardwright
