// SPDX-License-Identifier: Apache-2.0
#include "convert/piece_shares.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "shardwright/prepared_conversion.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

class PieceSharesOfLlama : public testing::Test {
 protected:
  static PreparedConversion prepared_llama() {
    ConvertRequest request;
    request.input = golden_path("hf/llama3/hf");
    request.output = "/nonexistent/out";
    request.parallel.tensor = 2;
    return prepare_conversion(request).value();
  }

  std::vector<std::uint32_t> every_second() const {
    std::vector<std::uint32_t> todo;
    for (std::uint32_t piece = 0; piece < pieces_.size(); piece += 2) todo.push_back(piece);
    return todo;
  }

  PreparedConversion conversion_ = prepared_llama();
  PieceList pieces_{conversion_.plan, 700};
};

TEST_F(PieceSharesOfLlama, EachPieceIsGivenOnceWhoeverAsks) {
  ASSERT_GT(pieces_.size(), 40U);
  for (const int ranks : {1, 2, 3, 8, 100}) {
    PieceShares shares = shares_of_pieces(pieces_, every_second(), ranks);
    std::vector<std::uint32_t> given;
    for (int turn = 0;; ++turn) {
      const auto piece = shares.take(turn * 7 % ranks);
      if (!piece) break;
      given.push_back(*piece);
    }
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(shares.take(rank), std::nullopt);
    std::ranges::sort(given);
    EXPECT_EQ(given, every_second()) << ranks;
  }
}

TEST_F(PieceSharesOfLlama, ARankBeginsWithNeighboursOfItsShareOfTheBytes) {
  constexpr std::uint64_t kRanks = 4;
  const std::vector<std::uint32_t> todo = every_second();
  std::uint64_t all = 0;
  for (const std::uint32_t piece : todo) all += pieces_.bytes(piece);
  PieceShares shares = shares_of_pieces(pieces_, todo, kRanks);
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) {
    const std::uint32_t first = shares.take(static_cast<int>(rank)).value();
    std::uint64_t before = 0;
    for (const std::uint32_t piece : todo) before += piece < first ? pieces_.bytes(piece) : 0;
    EXPECT_NEAR(static_cast<double>(before), static_cast<double>(rank * all / kRanks), 1000);
    EXPECT_EQ(shares.take(static_cast<int>(rank)), first + 2);
    EXPECT_EQ(shares.take(static_cast<int>(rank)), first + 4);
  }
}

TEST_F(PieceSharesOfLlama, WhatIsTakenInAdvanceIsTakenFromNobody) {
  PieceShares shares = shares_of_pieces(pieces_, every_second(), 2);
  std::vector<std::uint32_t> own;
  while (const auto piece = shares.take_own(0)) own.push_back(*piece);
  EXPECT_GT(own.size(), every_second().size() / 4);
  EXPECT_LT(own.size(), every_second().size() * 3 / 4);
  EXPECT_EQ(shares.take(1), own.back() + 2);
}

// Eight files of two pieces each, by three ranks: none but the last of a stretch is another's too.
TEST(PieceShares, StretchesEndWhereFilesDo) {
  std::vector<std::uint32_t> todo;
  std::vector<std::uint32_t> files;
  for (std::uint32_t piece = 0; piece < 16; ++piece) {
    todo.push_back(piece);
    files.push_back(piece / 2);
  }
  const std::vector<std::uint64_t> bytes(todo.size(), 1000);
  PieceShares shares(todo, bytes, 3, files);
  const auto own_files = [&](int rank) {
    std::vector<std::uint32_t> own;
    while (const auto piece = shares.take_own(rank)) own.push_back(files[*piece]);
    return own;
  };
  EXPECT_EQ(own_files(0), (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(own_files(1), (std::vector<std::uint32_t>{3, 3, 4, 4}));
  EXPECT_EQ(own_files(2), (std::vector<std::uint32_t>{5, 5, 6, 6, 7, 7}));
}

// Files of three, five and eight pieces: half of the first two would begin within the second.
TEST(PieceShares, WhatIsTakenFromAnotherBeginsWithAFile) {
  std::vector<std::uint32_t> todo;
  for (std::uint32_t piece = 0; piece < 16; ++piece) todo.push_back(piece);
  const std::vector<std::uint32_t> files = {0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2};
  const std::vector<std::uint64_t> bytes(todo.size(), 1000);
  PieceShares shares(todo, bytes, 2, files);
  std::vector<std::uint32_t> own;
  while (const auto piece = shares.take_own(1)) own.push_back(*piece);
  EXPECT_EQ(own, (std::vector<std::uint32_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(shares.take(1), 3U);
}

// Who has less to do takes what lies behind a long piece, not that too.
TEST(PieceShares, ALongPieceStaysWhereItIs) {
  const std::vector<std::uint64_t> bytes = {1, 9000, 1, 1};
  PieceShares shares({0, 1, 2, 3}, bytes, 2);
  EXPECT_EQ(shares.take(0), 0U);
  EXPECT_EQ(shares.take(0), 2U);
  EXPECT_EQ(shares.take(0), 3U);
  EXPECT_EQ(shares.take(1), 1U);
  EXPECT_EQ(shares.take(1), std::nullopt);
}

// But a file that is far longer than a share is read by several.
TEST(PieceShares, ALongFileIsSharedOut) {
  const std::vector<std::uint32_t> files = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const std::vector<std::uint64_t> bytes(10, 1000);
  PieceShares shares({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, bytes, 2, files);
  std::vector<std::uint32_t> own;
  while (const auto piece = shares.take_own(0)) own.push_back(*piece);
  EXPECT_EQ(own, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

// One rank does nothing: what it would have done is halved again and again.
TEST_F(PieceSharesOfLlama, TheRestOfASlowRankIsTakenFromItsEnd) {
  PieceShares shares = shares_of_pieces(pieces_, every_second(), 2);
  const auto first_of_slow = shares.take(1);
  ASSERT_TRUE(first_of_slow);
  std::vector<std::uint32_t> taken;
  while (const auto piece = shares.take(0)) taken.push_back(*piece);
  EXPECT_EQ(taken.size() + 1, every_second().size());
  // Its second half comes before the rest of it.
  const auto own_end =
      std::ranges::find_if(taken, [&](auto piece) { return piece > *first_of_slow; });
  ASSERT_NE(own_end, taken.end());
  EXPECT_GT(*own_end, *first_of_slow + 2);
  EXPECT_EQ(taken.back(), *first_of_slow + 2);
}

}  // namespace
}  // namespace shardwright
