// SPDX-License-Identifier: Apache-2.0
#include "exec/payload_digests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>

namespace shardwright {
namespace {

constexpr std::uint64_t kBlock = kDigestBlockBytes;

// One tensor of bytes in chunks of these sizes.
Catalog catalog_of(const std::vector<std::uint64_t>& sizes) {
  std::int64_t total = 0;
  for (const std::uint64_t size : sizes) total += static_cast<std::int64_t>(size);
  StoredTensor tensor{{"w", DType::kU8, {total}}, ChunkList(1), Encoding::kRaw};
  std::int64_t at = 0;
  for (const std::uint64_t size : sizes) {
    const auto extent = static_cast<std::int64_t>(size);
    tensor.chunks.push_back({Box{{at}, {extent}}, 0, {static_cast<std::uint64_t>(at), size}, {}});
    at += extent;
  }
  return {{"f"}, {std::move(tensor)}, {}};
}

std::vector<std::byte> bytes_of_chance(std::uint64_t count) {
  std::mt19937_64 chance(count);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(chance());
  return bytes;
}

// By the definition.
DigestBytes expected_digest(std::span<const std::byte> bytes) {
  Digest whole;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), kBlock);
    Digest block;
    block.add(bytes.first(size));
    whole.add(block.bytes());
    bytes = bytes.subspan(size);
  }
  return whole.bytes();
}

Result<DigestBytes> digest_of_chunk(const PayloadDigests& digests, std::uint32_t chunk,
                                    std::span<const std::byte> bytes, std::uint64_t& read) {
  std::vector<std::byte> buffer(kBlock);
  return digest_payload(
      bytes.size(),
      [&](std::uint64_t offset, std::span<std::byte> into) -> Status {
        read += into.size();
        std::ranges::copy(bytes.subspan(static_cast<std::size_t>(offset), into.size()),
                          into.begin());
        return {};
      },
      digests.blocks(0, chunk), buffer);
}

struct Way {
  std::uint64_t run;
  bool shuffled;
  bool is_read;  // whether some of it has to be read in the end
};

class PayloadRuns : public testing::TestWithParam<Way> {};

TEST_P(PayloadRuns, HaveTheSameDigestHoweverTheyCome) {
  const std::vector<std::uint64_t> sizes = {3 * kBlock + 17, 5, kBlock, 50 * kBlock};
  const Catalog catalog = catalog_of(sizes);
  PayloadDigests digests(catalog);
  std::vector<PieceRun> runs;
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint32_t chunk = 0; chunk < sizes.size(); ++chunk) {
    payloads.push_back(bytes_of_chance(sizes[chunk]));
    for (std::uint64_t at = 0; at < sizes[chunk]; at += GetParam().run) {
      runs.push_back({0, chunk, at, std::min(GetParam().run, sizes[chunk] - at)});
    }
  }
  if (GetParam().shuffled) std::ranges::shuffle(runs, std::mt19937(7));
  for (const PieceRun& run : runs) {
    digests.add(run, std::span(payloads[run.chunk])
                         .subspan(static_cast<std::size_t>(run.offset),
                                  static_cast<std::size_t>(run.length)));
  }
  std::uint64_t read = 0;
  for (std::uint32_t chunk = 0; chunk < sizes.size(); ++chunk) {
    EXPECT_EQ(digest_of_chunk(digests, chunk, payloads[chunk], read).value(),
              expected_digest(payloads[chunk]));
  }
  EXPECT_EQ(read > 0, GetParam().is_read);
  EXPECT_EQ(digests.unknown() > 0, GetParam().is_read);
}

// Of runs in an order of chance not all find room to wait for what lies in front of them.
INSTANTIATE_TEST_SUITE_P(Runs, PayloadRuns,
                         testing::Values(Way{kBlock, false, false}, Way{4 * kBlock, true, false},
                                         Way{kBlock / 3, false, false},
                                         Way{5 * kBlock / 2, false, false},
                                         Way{2 * kBlock / 3, true, true}));

TEST(PayloadDigests, AreOfSeveralThreads) {
  constexpr std::uint64_t kSize = 24 * kBlock + 1;
  constexpr std::uint64_t kRun = 700'000;
  const Catalog catalog = catalog_of({kSize});
  const std::vector<std::byte> bytes = bytes_of_chance(kSize);
  PayloadDigests digests(catalog);
  std::atomic<std::uint64_t> next{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t at = kRun * next++; at < kSize; at = kRun * next++) {
        const std::uint64_t length = std::min(kRun, kSize - at);
        digests.add({0, 0, at, length}, std::span(bytes).subspan(static_cast<std::size_t>(at),
                                                                 static_cast<std::size_t>(length)));
      }
    });
  }
  threads.clear();
  std::uint64_t read = 0;
  EXPECT_EQ(digest_of_chunk(digests, 0, bytes, read).value(), expected_digest(bytes));
}

// As where a journal tells of a piece that the disk has not kept: its bytes came, others follow.
TEST(PayloadDigests, AreNotOfBytesThatWereForgotten) {
  constexpr std::uint64_t kSize = 3 * kBlock;
  constexpr std::uint64_t kHalf = kSize / 2;
  const Catalog catalog = catalog_of({kSize});
  const std::vector<std::byte> bytes = bytes_of_chance(kSize);
  const std::vector<std::byte> wrong(kHalf);
  PayloadDigests digests(catalog);
  digests.add({0, 0, 0, kHalf}, wrong);
  digests.forget({0, 0, 0, kHalf});
  digests.add({0, 0, kHalf, kHalf}, std::span(bytes).subspan(kHalf));
  digests.add({0, 0, 0, kHalf}, std::span(bytes).first(kHalf));
  std::uint64_t read = 0;
  EXPECT_EQ(digest_of_chunk(digests, 0, bytes, read).value(), expected_digest(bytes));
  EXPECT_EQ(read, kBlock) << "the block that both have";
}

TEST(PayloadDigests, AreNotOfCopiedObjects) {
  const Catalog catalog = catalog_of({8});
  PayloadDigests digests(catalog);
  digests.add({0, PieceRun::kObject, 0, 8}, bytes_of_chance(8));
  EXPECT_EQ(digests.unknown(), 1U);
  EXPECT_EQ(digests.size(), 1U);
}

TEST(DigestText, IsReadAsItIsWritten) {
  const DigestBytes digest = digest_bytes_of(bytes_of_chance(100));
  const std::string text = digest_text(digest);
  EXPECT_EQ(digest_from_text(text), digest);
  EXPECT_FALSE(digest_from_text(text.substr(1)));
  EXPECT_FALSE(digest_from_text("G" + text.substr(1)));
  EXPECT_FALSE(digest_from_text("A" + text.substr(1)));
}

// Two processes that write a part each know of each other's blocks, not of what lies between.
TEST(PayloadDigests, AreTakenFromAnotherProcess) {
  const std::vector<std::uint64_t> sizes = {4 * kBlock, 2 * kBlock + 5};
  const Catalog catalog = catalog_of(sizes);
  const std::vector<std::byte> first = bytes_of_chance(sizes[0]);
  const std::vector<std::byte> second = bytes_of_chance(sizes[1]);
  PayloadDigests own(catalog);
  PayloadDigests other(catalog);
  const std::uint64_t cut = 2 * kBlock + 100;
  own.add({0, 0, 0, cut}, std::span(first).first(cut));
  other.add({0, 0, cut, sizes[0] - cut}, std::span(first).subspan(cut));
  other.add({0, 1, 0, sizes[1]}, second);
  EXPECT_EQ(own.unknown(), 2U + 3U);
  ASSERT_TRUE(own.take(other.message()));
  EXPECT_EQ(own.unknown(), 1U);
  std::uint64_t read = 0;
  EXPECT_EQ(digest_of_chunk(own, 0, first, read).value(), expected_digest(first));
  EXPECT_EQ(digest_of_chunk(own, 1, second, read).value(), expected_digest(second));
  EXPECT_EQ(read, kBlock);
  ASSERT_TRUE(own.take(PayloadDigests(catalog).message()));
  EXPECT_EQ(own.unknown(), 1U);
  const Catalog smaller = catalog_of({kBlock});
  EXPECT_EQ(PayloadDigests(smaller).take(other.message()).error().code, Code::kInternal);
}

}  // namespace
}  // namespace shardwright
