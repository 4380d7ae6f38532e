// SPDX-License-Identifier: Apache-2.0
// What the files of a legacy target say of themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/golden.h"
#include "format/legacy/legacy_file.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ConvertRequest to_legacy(const std::string& input, const std::string& output,
                         const ParallelConfig& parallel) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "legacy";
  request.parallel = parallel;
  return request;
}

std::map<std::string, std::int64_t> ranks_in(const std::string& folder, std::int64_t world) {
  std::map<std::string, std::int64_t> ranks;
  const auto directory = open_local_directory(folder).value();
  const std::vector<DirectoryEntry> entries = directory->list("").value();
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with("mp_rank_")) continue;
    const auto file = directory->open(entry.name + "/model_optim_rng.pt").value();
    const LegacyFile contents = read_legacy_file(*file, LegacyDetail::kNames).value();
    ranks[entry.name] = std::get<std::int64_t>(contents.arguments.at("rank"));
    EXPECT_EQ(contents.arguments.at("world_size"), ArgValue{world});
  }
  return ranks;
}

TEST(WrittenRanks, AreThoseOfARunOfTheseSizes) {
  const TemporaryFolder out;
  ASSERT_TRUE(convert_now(to_legacy(golden_path("hf/llama3/hf"), out / "x", {2, 2, 1, 1, 2})));
  EXPECT_EQ(ranks_in(out / "x/iter_0000000", 4),
            (std::map<std::string, std::int64_t>{{"mp_rank_00_000", 0},
                                                 {"mp_rank_00_001", 2},
                                                 {"mp_rank_01_000", 1},
                                                 {"mp_rank_01_001", 3}}));
  ASSERT_TRUE(convert_now(to_legacy(golden_path("hf/qwen3_moe/hf"), out / "y", {2, 1, 1, 4, 1})));
  EXPECT_EQ(ranks_in(out / "y/iter_0000000", 4),
            (std::map<std::string, std::int64_t>{{"mp_rank_00_000", 0},
                                                 {"mp_rank_00_002", 2},
                                                 {"mp_rank_01_001", 1},
                                                 {"mp_rank_01_003", 3}}));
}

// Also where the source's arguments, of another run, know a rank already.
TEST(WrittenRanks, ReplaceThoseOfTheSource) {
  const TemporaryFolder out;
  const std::string source = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  ConvertRequest request = to_legacy(source, out / "x", {1, 2, 1, 1, 1});
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(ranks_in(out / "x/iter_0000010", 2),
            (std::map<std::string, std::int64_t>{{"mp_rank_00_000", 0}, {"mp_rank_00_001", 1}}));
}

// So that swapped folders are noticed, by every target.
TEST(WrittenRanks, AreBelievedWhenTheyAreReadAgain) {
  const TemporaryFolder out;
  ASSERT_TRUE(convert_now(to_legacy(golden_path("hf/llama3/hf"), out / "x", {2, 1, 1, 1, 2})));
  const std::string iter = out / "x/iter_0000000/";
  fs::rename(iter + "mp_rank_00", iter + "mp_rank_02");
  fs::rename(iter + "mp_rank_01", iter + "mp_rank_00");
  fs::rename(iter + "mp_rank_02", iter + "mp_rank_01");
  for (const std::string_view format : {"torch_dist", "hf", "legacy", "safetensors"}) {
    ConvertRequest request = to_legacy(out / "x", out / "y", {2, 1, 1, 1, 2});
    request.format = format;
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kRankMisplaced);
    EXPECT_THAT(refused.error().message,
                HasSubstr("mp_rank_00: its arguments say that rank 1 of 2 wrote it, whose folder "
                          "is mp_rank_01"));
  }
}

}  // namespace
}  // namespace shardwright
