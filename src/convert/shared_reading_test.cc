// SPDX-License-Identifier: Apache-2.0
#include "convert/shared_reading.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/fail.h"
#include "comm/thread_ranks.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ReadingBody = std::function<Status(RankSession&, SharedReading&)>;

// What each rank ends with.
std::vector<Result<int>> read_as_ranks(int size, const ReadingBody& body) {
  ThreadRanks ranks(size);
  std::vector<Result<int>> results(static_cast<std::size_t>(size), 99);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = ranks.communicator(rank);
      SessionOptions options;
      options.timeout = std::chrono::seconds(30);
      RankSession session(*communicator, options);
      SharedReading reading(session);
      const Status status =
          session.run([&] { return reading.run([&] { return body(session, reading); }); });
      results[static_cast<std::size_t>(rank)] =
          session.settle(status ? Result<int>(0) : Result<int>(std::unexpected(status.error())));
    });
  }
  threads.clear();
  return results;
}

Result<std::string> read_some(const ReadableFile& file, std::uint64_t offset, std::size_t length) {
  std::string bytes(length, '?');
  SW_TRY(file.read_at(offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

TEST(SharedReading, OthersHaveWhatRankZeroReadUntilItEnds) {
  const TemporaryFolder place;
  place.put("in/a", "0123456789");
  place.put("config", "{}");
  for (const auto& result :
       read_as_ranks(6, [&](RankSession& session, SharedReading& reading) -> Status {
         const auto folder = SW_TRY(open_directory(place / "in"));
         const auto file = SW_TRY(folder->open("a"));
         const auto config = SW_TRY(open_named(place / "config"));
         EXPECT_EQ(SW_TRY(read_some(*file, 2, 4)), "2345");
         EXPECT_EQ(SW_TRY(read_some(*config, 0, 2)), "{}");
         EXPECT_EQ(file->is_open(), session.is_first());
         EXPECT_EQ(config->is_open(), session.is_first());
         reading.end();
         // From here on each reads by itself.
         EXPECT_EQ(SW_TRY(read_some(*file, 6, 4)), "6789");
         EXPECT_TRUE(file->is_open());
         EXPECT_EQ(config->is_open(), session.is_first());
         EXPECT_TRUE(SW_TRY(open_named(place / "config"))->is_open());
         return {};
       })) {
    EXPECT_TRUE(result) << result.error().text();
  }
}

TEST(SharedReading, AFileThatRankZeroSawOtherwiseIsRefused) {
  const TemporaryFolder place;
  place.put("config", "{}");
  const auto results =
      read_as_ranks(2, [&](RankSession& session, SharedReading& reading) -> Status {
        const auto config = SW_TRY(open_named(place / "config"));
        if (session.is_first()) place.put("config", "{\"other\": 1}");
        reading.end();
        return {};
      });
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code, Code::kRanksDiffer);
}

TEST(SharedReading, NobodyWaitsForARankZeroThatFailed) {
  const auto results = read_as_ranks(3, [](RankSession& session, SharedReading&) -> Status {
    EXPECT_TRUE(session.is_first()) << "the others have not begun";
    return fail(Code::kNotFound, "there is nothing");
  });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace shardwright
