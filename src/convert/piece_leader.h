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
#include "convert/coworkers.h"
#include "convert/piece_shares.h"
#include "exec/piece_sharing.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// Rank 0 of a conversion that several ranks do: hands out pieces, hears which are finished, and
/// does some itself. Borrows all it is given; made and destroyed by the thread that talks.
class PieceLeader final : public Coworkers, public PieceSharing, private PieceQueue {
 public:
  PieceLeader(const PreparedConversion& conversion, RankSession& session,
              std::uint64_t least_piece_bytes);
  ~PieceLeader() override;
  PieceLeader(const PieceLeader&) = delete;
  PieceLeader& operator=(const PieceLeader&) = delete;

  [[nodiscard]] Status check_server(const std::string& output) const override;
  [[nodiscard]] Status agree() override;
  [[nodiscard]] std::uint64_t piece_bytes(std::uint64_t alone,
                                          std::uint64_t total_bytes) const override;
  void gather(PayloadDigests* digests) override { digests_ = digests; }
  void read_back(const std::string& folder, std::uint64_t piece_bytes) override;
  void ask_of(PublishOptions& publish) const override;
  [[nodiscard]] Status set_output(const Publication& output, std::uint64_t piece_bytes) override;
  [[nodiscard]] PieceSharing* sharing() override { return this; }
  [[nodiscard]] std::uint64_t bytes_done() const override { return bytes_done_; }
  [[nodiscard]] Status let_go() override;
  [[nodiscard]] Read read() const override;

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

  // Errors: kRankLost, kCancelled.
  [[nodiscard]] Status may_appear() const;
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

}  // namespace shardwright
