// SPDX-License-Identifier: Apache-2.0
// Conversions by several ranks, which are threads here.
#include "convert/shared_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "comm/thread_ranks.h"
#include "convert/golden.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct SharedWay {
  std::string golden;
  std::string format;
  ParallelConfig parallel;
};

std::map<std::string, std::string> files_of(const TemporaryFolder& place, const std::string& name) {
  std::map<std::string, std::string> files;
  const fs::path root = place.path() / name;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = fs::relative(entry.path(), root).string();
    files[path] = place.get(name + "/" + path);
  }
  return files;
}

class SharedRun : public testing::TestWithParam<SharedWay> {
 protected:
  ConvertRequest request(const std::string& output) const {
    ConvertRequest request;
    request.input = golden_path(GetParam().golden);
    request.output = place_ / output;
    request.format = GetParam().format;
    request.parallel = GetParam().parallel;
    request.threads = 2;
    return request;
  }

  using Change = std::function<void(int rank, ConvertRequest&)>;

  // What each rank ends with; `reports_` has the report of rank 0.
  std::vector<Result<int>> convert(int size, const std::string& output, const Change& change = {}) {
    ThreadRanks ranks(size);
    std::vector<Result<int>> results(static_cast<std::size_t>(size), 99);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        const auto communicator = ranks.communicator(rank);
        SessionOptions options;
        options.timeout = std::chrono::seconds(30);
        RankSession session(*communicator, options);
        ConvertRequest own = request(output);
        if (change) change(rank, own);
        results[static_cast<std::size_t>(rank)] = session.settle(convert_as(session, own));
      });
    }
    threads.clear();
    return results;
  }

  Result<int> convert_as(RankSession& session, const ConvertRequest& own) {
    const PreparedConversion conversion = SW_TRY(prepare_shared_conversion(own, session));
    constexpr std::uint64_t kSmallPieces = 700;
    ConvertReport report = SW_TRY(run_shared_conversion(conversion, {}, session, kSmallPieces));
    if (session.is_first()) report_ = std::move(report);
    return 0;
  }

  TemporaryFolder place_;
  ConvertReport report_;
};

TEST_P(SharedRun, WritesTheSameBytesWithAnyNumberOfRanks) {
  ASSERT_TRUE(convert_now(request("alone")));
  const auto expected = files_of(place_, "alone");
  for (const int ranks : {1, 2, 3, 8}) {
    const std::string output = "by" + std::to_string(ranks);
    for (const auto& result : convert(ranks, output)) {
      EXPECT_TRUE(result) << result.error().text();
    }
    EXPECT_EQ(files_of(place_, output), expected) << ranks;
  }
  EXPECT_EQ(place_.tree().find("partial"), std::string::npos);
}

// Whoever has read or written what they are of.
TEST_P(SharedRun, WritesTheSameDigestsWithAnyNumberOfRanks) {
  const auto with_digests = [](int /*rank*/, ConvertRequest& own) {
    own.digests = true;
    own.sha256 = true;
  };
  ConvertRequest alone = request("alone");
  with_digests(0, alone);
  ASSERT_TRUE(convert_now(alone));
  for (const int ranks : {2, 5}) {
    const std::string output = "by" + std::to_string(ranks);
    for (const auto& result : convert(ranks, output, with_digests)) {
      EXPECT_TRUE(result) << result.error().text();
    }
    EXPECT_EQ(files_of(place_, output), files_of(place_, "alone")) << ranks;
  }
}

TEST_P(SharedRun, NothingIsWrittenWhereOneRankHasPlannedSomethingElse) {
  const auto results = convert(3, "out", [](int rank, ConvertRequest& own) {
    if (rank == 2) own.dtype = DType::kF32;
  });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kRanksDiffer);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 2 has planned something else"));
  EXPECT_EQ(place_.tree(), "");
}

TEST_P(SharedRun, NothingIsLeftWhereOneRankFailsToPlan) {
  const auto results = convert(3, "out", [](int rank, ConvertRequest& own) {
    if (rank == 1) own.input = "/nonexistent/in";
  });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kNotFound);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1: "));
  EXPECT_EQ(place_.tree(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SharedRun,
    testing::Values(SharedWay{"hf/llama3/hf", "torch_dist", {.tensor = 2}},
                    SharedWay{"hf/llama3/hf", "legacy", {.tensor = 2, .pipeline = 2}},
                    SharedWay{"hf/llama3/hf", "hf", {}}),
    [](const auto& way) { return way.param.format; });

}  // namespace
}  // namespace shardwright
