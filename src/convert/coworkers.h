// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "exec/payload_digests.h"
#include "exec/piece_sharing.h"
#include "io/publish.h"
#include "shardwright/convert.h"

namespace shardwright {

/// Others that do a part of a conversion's run. The run's thread calls these in this order; a run
/// alone has nobody to speak to, and each of them does nothing here.
class Coworkers {
 public:
  /// What they read of the source.
  struct Read {
    std::uint64_t bytes = 0;
    std::uint64_t opens = 0;
  };

  Coworkers() = default;
  virtual ~Coworkers() = default;
  Coworkers(const Coworkers&) = delete;
  Coworkers& operator=(const Coworkers&) = delete;

  /// Whether they can write to a server. Error: kUsage.
  [[nodiscard]] virtual Status check_server(const std::string& /*output*/) const { return {}; }
  /// Waits until all have planned the same. To be called before anything is written. Error:
  /// kRanksDiffer.
  [[nodiscard]] virtual Status agree() { return {}; }
  /// How large pieces may be so that each gets several, where a run alone has pieces of `alone`.
  [[nodiscard]] virtual std::uint64_t piece_bytes(std::uint64_t alone,
                                                  std::uint64_t /*total_bytes*/) const {
    return alone;
  }
  /// Who gets what they know of digests, when all is written; null: nobody.
  virtual void gather(PayloadDigests* /*digests*/) {}
  /// What lies in a folder is read back by all, if anything is.
  virtual void read_back(const std::string& /*folder*/, std::uint64_t /*piece_bytes*/) {}
  /// What has to be asked before the output appears, and once it is there.
  virtual void ask_of(PublishOptions& /*publish*/) const {}
  /// Where all write, and what they take away if this process is lost. Waits until all know.
  [[nodiscard]] virtual Status set_output(const Publication& /*output*/,
                                          std::uint64_t /*piece_bytes*/) {
    return {};
  }
  /// How pieces are shared with them; null: not at all.
  [[nodiscard]] virtual PieceSharing* sharing() { return nullptr; }
  /// Of the payload, by them. May be called by any thread.
  [[nodiscard]] virtual std::uint64_t bytes_done() const { return 0; }
  /// All is written, and hashed if it is to be: they are let go. Errors: kRankLost, kCancelled.
  [[nodiscard]] virtual Status let_go() { return {}; }
  [[nodiscard]] virtual Read read() const { return {}; }
};

/// Prepares nothing, writes and publishes all: run_conversion with others. Errors: besides its own
/// those of `coworkers`.
[[nodiscard]] Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                                   const RunOptions& options, Coworkers& coworkers);

}  // namespace shardwright
