// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "exec/piece_list.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A payload is digested in blocks of so many bytes, the last of which may be shorter: its digest
/// is the XXH3-128 of those of its blocks, one behind the other.
inline constexpr std::uint64_t kDigestBlockBytes = std::uint64_t{1} << 20;

/// Reads bytes of a payload, from an offset in it.
using ReadPayload = std::function<Status(std::uint64_t offset, std::span<std::byte> buffer)>;

/// The digest of a payload. Of its blocks those that `known` knows (see PayloadDigests::blocks) are
/// not read; where it is empty all are. REQUIRES: `buffer` holds a block.
[[nodiscard]] Result<DigestBytes> digest_payload(std::uint64_t bytes, const ReadPayload& read,
                                                 std::span<const DigestBytes> known,
                                                 std::span<std::byte> buffer);

/// Stands for a block of which nothing is known.
inline constexpr DigestBytes kUnknownDigest = {};

/// The digests of blocks of a target's payloads, taken from their bytes while these pass by, in
/// whatever order and runs. What a block's bytes come in may have to wait for what lies in front of
/// it: there is little room for that, and a block that finds none stays unknown, as do those of
/// which not all bytes came by here. Safe for concurrent use.
class PayloadDigests {
 public:
  /// Borrows the catalog of the target.
  explicit PayloadDigests(const Catalog& target);

  /// Bytes that were written or read back. Copied objects are passed over.
  void add(const PieceRun& run, std::span<const std::byte> bytes);
  /// Bytes of a run that were added are not what they should be: others will come.
  void forget(const PieceRun& run);

  /// What is known, for take() of another process that has the same target. REQUIRES: nothing is
  /// added meanwhile.
  [[nodiscard]] std::string message() const;
  /// Takes what another process knows. Error: kInternal for what no message() gave.
  [[nodiscard]] Status take(std::string_view message);

  /// The blocks of a chunk. REQUIRES: nothing is added meanwhile.
  [[nodiscard]] std::span<const DigestBytes> blocks(std::uint32_t tensor,
                                                    std::uint32_t chunk) const;
  /// How many blocks there are, and of how many nothing is known.
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  [[nodiscard]] std::size_t unknown() const;

  /// The most that one takes in memory, of a target of this catalog.
  [[nodiscard]] static std::uint64_t most_bytes(const Catalog& target);

 private:
  // A block of which some bytes came: the digest of its beginning, and what lies behind a gap.
  struct Begun {
    Digest digest;
    std::uint64_t digested = 0;
    std::map<std::uint64_t, std::vector<std::byte>> waiting;  // by offset in the block
  };
  struct Shard {
    std::mutex mutex;
    std::map<std::size_t, Begun> begun;  // by block
    std::uint64_t waiting_bytes = 0;
  };

  [[nodiscard]] std::size_t first_block(std::uint32_t tensor, std::uint32_t chunk) const {
    return first_block_[first_chunk_[tensor] + chunk];
  }
  void add_part(std::size_t block, std::uint64_t from, std::uint64_t block_bytes,
                std::span<const std::byte> bytes);
  void make_room(Shard& shard);
  void lose(Shard& shard, std::map<std::size_t, Begun>::iterator place);

  const Catalog* target_;
  std::vector<std::size_t> first_chunk_;  // of each tensor, among all chunks
  std::vector<std::size_t> first_block_;  // of each chunk, and the end
  std::vector<DigestBytes> blocks_;
  std::array<Shard, 4> shards_;
};

}  // namespace shardwright
