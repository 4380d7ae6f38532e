// SPDX-License-Identifier: Apache-2.0
#include "exec/payload_digests.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/message.h"
#include "exec/payload_place.h"

namespace shardwright {
namespace {

// What may wait in a shard for what lies in front of it, and how many blocks may be begun.
constexpr std::uint64_t kMostWaitingBytes = 2 * kDigestBlockBytes;
constexpr std::size_t kMostBegun = 256;
constexpr std::uint64_t kBegunBytes = 1024;  // of a digest's state, and of what leads to it

// A block that found no room: what comes of it is passed over. No digest is likely to be this.
constexpr DigestBytes kLostDigest = [] {
  DigestBytes bytes{};
  bytes.fill(std::byte{0xff});
  return bytes;
}();

bool is_known(const DigestBytes& digest) {
  return digest != kUnknownDigest && digest != kLostDigest;
}

std::uint64_t blocks_of(std::uint64_t bytes) {
  return bytes / kDigestBlockBytes + (bytes % kDigestBlockBytes == 0 ? 0 : 1);
}

}  // namespace

Result<DigestBytes> digest_payload(std::uint64_t bytes, const ReadPayload& read,
                                   std::span<const DigestBytes> known,
                                   std::span<std::byte> buffer) {
  Digest whole;
  for (std::uint64_t block = 0; block < blocks_of(bytes); ++block) {
    if (block < known.size() && is_known(known[block])) {
      whole.add(known[block]);
      continue;
    }
    const std::uint64_t begin = block * kDigestBlockBytes;
    const std::span<std::byte> piece = buffer.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(kDigestBlockBytes, bytes - begin)));
    SW_TRY(read(begin, piece));
    whole.add(digest_bytes_of(piece));
  }
  return whole.bytes();
}

PayloadDigests::PayloadDigests(const Catalog& target) : target_(&target) {
  std::uint64_t blocks = 0;
  for (const StoredTensor& tensor : target.tensors) {
    first_chunk_.push_back(first_block_.size());
    for (std::uint32_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
      first_block_.push_back(static_cast<std::size_t>(blocks));
      blocks += blocks_of(payload_bytes(tensor, chunk));
    }
  }
  first_block_.push_back(static_cast<std::size_t>(blocks));
  blocks_.resize(static_cast<std::size_t>(blocks), kUnknownDigest);
}

std::uint64_t PayloadDigests::most_bytes(const Catalog& target) {
  std::uint64_t bytes =
      std::tuple_size_v<decltype(shards_)> * (kMostWaitingBytes + kMostBegun * kBegunBytes);
  for (const StoredTensor& tensor : target.tensors) {
    bytes += (1 + tensor.chunks.size()) * sizeof(std::size_t);
    for (std::uint32_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
      bytes += blocks_of(payload_bytes(tensor, chunk)) * sizeof(DigestBytes);
    }
  }
  return bytes;
}

void PayloadDigests::add(const PieceRun& run, std::span<const std::byte> bytes) {
  if (run.is_object()) return;
  const std::uint64_t whole = payload_bytes(target_->tensors[run.index], run.chunk);
  const std::size_t first = first_block(run.index, run.chunk);
  for (std::uint64_t at = run.offset; !bytes.empty();) {
    const std::uint64_t begin = at - at % kDigestBlockBytes;
    const std::uint64_t block_bytes = std::min(kDigestBlockBytes, whole - begin);
    const auto here = bytes.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), begin + block_bytes - at)));
    const std::size_t block = first + static_cast<std::size_t>(begin / kDigestBlockBytes);
    if (here.size() == block_bytes) {
      blocks_[block] = digest_bytes_of(here);  // nobody else has any of it
    } else {
      add_part(block, at - begin, block_bytes, here);
    }
    bytes = bytes.subspan(here.size());
    at += here.size();
  }
}

void PayloadDigests::add_part(std::size_t block, std::uint64_t from, std::uint64_t block_bytes,
                              std::span<const std::byte> bytes) {
  Shard& shard = shards_[block % shards_.size()];
  const std::scoped_lock lock(shard.mutex);
  if (blocks_[block] == kLostDigest) return;
  const auto place = shard.begun.try_emplace(block).first;
  Begun& begun = place->second;
  if (from != begun.digested) {
    begun.waiting.emplace(from, std::vector<std::byte>(bytes.begin(), bytes.end()));
    shard.waiting_bytes += bytes.size();
    return make_room(shard);
  }
  begun.digest.add(bytes);
  begun.digested += bytes.size();
  for (auto next = begun.waiting.begin();
       next != begun.waiting.end() && next->first == begun.digested;
       next = begun.waiting.erase(next)) {
    begun.digest.add(next->second);
    begun.digested += next->second.size();
    shard.waiting_bytes -= next->second.size();
  }
  if (begun.digested < block_bytes) return make_room(shard);
  blocks_[block] = begun.digest.bytes();
  shard.begun.erase(place);
}

// Blocks are begun about in order: the first ones have waited longest.
void PayloadDigests::make_room(Shard& shard) {
  auto next = shard.begun.begin();
  while (next != shard.begun.end() &&
         (shard.waiting_bytes > kMostWaitingBytes || shard.begun.size() > kMostBegun)) {
    const auto place = next++;
    const bool is_wanted = shard.begun.size() > kMostBegun || !place->second.waiting.empty();
    if (is_wanted) lose(shard, place);
  }
}

void PayloadDigests::lose(Shard& shard, std::map<std::size_t, Begun>::iterator place) {
  for (const auto& [from, bytes] : place->second.waiting) shard.waiting_bytes -= bytes.size();
  blocks_[place->first] = kLostDigest;
  shard.begun.erase(place);
}

void PayloadDigests::forget(const PieceRun& run) {
  if (run.is_object() || run.length == 0) return;
  const std::size_t first = first_block(run.index, run.chunk);
  const std::size_t end =
      first + static_cast<std::size_t>((run.offset + run.length - 1) / kDigestBlockBytes) + 1;
  for (std::size_t block = first + static_cast<std::size_t>(run.offset / kDigestBlockBytes);
       block < end; ++block) {
    Shard& shard = shards_[block % shards_.size()];
    const std::scoped_lock lock(shard.mutex);
    const auto place = shard.begun.find(block);
    if (place != shard.begun.end()) lose(shard, place);
    // What the neighbours have of it may be told before or after: it is read in the end, unless it
    // comes whole.
    blocks_[block] = kLostDigest;
  }
}

std::string PayloadDigests::message() const {
  MessageWriter message;
  for (std::size_t begin = 0; begin < blocks_.size();) {
    if (!is_known(blocks_[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin + 1;
    while (end < blocks_.size() && is_known(blocks_[end])) ++end;
    const auto bytes = std::as_bytes(std::span(blocks_).subspan(begin, end - begin));
    message.number(begin).text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    begin = end;
  }
  return message.take();
}

Status PayloadDigests::take(std::string_view message) {
  MessageReader reader(message);
  while (!reader.is_at_end()) {
    const std::uint64_t begin = SW_TRY(reader.number());
    const std::string bytes = SW_TRY(reader.text());
    const std::size_t count = bytes.size() / sizeof(DigestBytes);
    if (begin > blocks_.size() || count > blocks_.size() - begin ||
        bytes.size() != count * sizeof(DigestBytes)) {
      return fail(Code::kInternal, "digests of another target");
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t block = static_cast<std::size_t>(begin) + i;
      Shard& shard = shards_[block % shards_.size()];
      const std::scoped_lock lock(shard.mutex);
      if (const auto place = shard.begun.find(block); place != shard.begun.end())
        lose(shard, place);
      std::memcpy(&blocks_[block], bytes.data() + i * sizeof(DigestBytes), sizeof(DigestBytes));
    }
  }
  return {};
}

std::span<const DigestBytes> PayloadDigests::blocks(std::uint32_t tensor,
                                                    std::uint32_t chunk) const {
  const std::size_t place = first_chunk_[tensor] + chunk;
  return std::span(blocks_).subspan(first_block_[place],
                                    first_block_[place + 1] - first_block_[place]);
}

std::size_t PayloadDigests::unknown() const {
  return blocks_.size() - static_cast<std::size_t>(std::ranges::count_if(blocks_, is_known));
}

}  // namespace shardwright
