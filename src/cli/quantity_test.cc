// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwright::cli {
namespace {

TEST(ParseBytes, ReadsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("1"), 1u);
  EXPECT_EQ(parse_bytes("100B"), 100u);
  EXPECT_EQ(parse_bytes("5GB"), 5'000'000'000u);
  EXPECT_EQ(parse_bytes("5gb"), 5'000'000'000u);
  EXPECT_EQ(parse_bytes("256MiB"), std::uint64_t{256} << 20);
  EXPECT_EQ(parse_bytes("3KB"), 3'000u);
  EXPECT_EQ(parse_bytes("3KiB"), 3'072u);
  EXPECT_EQ(parse_bytes("2TiB"), std::uint64_t{2} << 40);
  EXPECT_EQ(parse_bytes("8388607TiB"), std::uint64_t{8388607} << 40);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "0", "0GB", "-1", "+1", "1.5GB", "5G", "5 GB", " 5GB", "5GB ", "GB", "5GiBs", "0x10",
        "5e9", "18446744073709551616", "18446744073709551615", "8388608TiB", "99999999999TB"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(ParseCount, TakesWholeNumbersFromOne) {
  EXPECT_EQ(parse_count("1", 1), 1);
  EXPECT_EQ(parse_count("010", 10), 10);
  EXPECT_EQ(parse_count("1000000000", 1'000'000'000), 1'000'000'000);
  for (const std::string_view text :
       {"", "0", "-1", "+2", "2.0", "two", "0x1", "9", "99999999999999999999", " 2", "2 "}) {
    EXPECT_FALSE(parse_count(text, 8)) << text;
  }
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1), "1 byte");
  EXPECT_EQ(format_bytes(999), "999 bytes");
  EXPECT_EQ(format_bytes(1'000), "1.00 kB");
  EXPECT_EQ(format_bytes(15'300), "15.3 kB");
  EXPECT_EQ(format_bytes(999'999), "1.00 MB");
  EXPECT_EQ(format_bytes(1'500'000'000), "1.50 GB");
  EXPECT_EQ(format_bytes(18'446'744'073'709'551'615U), "18.4 EB");
  EXPECT_EQ(format_memory(std::uint64_t{256} << 20), "256 MiB");
}

TEST(Format, CountsAndTimes) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'000), "1,000");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
  EXPECT_EQ(format_count(1, "file"), "1 file");
  EXPECT_EQ(format_count(0, "file"), "0 files");
  EXPECT_EQ(format_seconds(-1), "0.00 s");
  EXPECT_EQ(format_seconds(0.421), "0.42 s");
  EXPECT_EQ(format_seconds(12.3), "12 s");
  EXPECT_EQ(format_seconds(59.7), "1m00s");
  EXPECT_EQ(format_seconds(185), "3m05s");
  EXPECT_EQ(format_seconds(7800), "2h10m");
  EXPECT_EQ(format_seconds(1.0 / 0.0), "277777h46m");
}

RC_GTEST_PROP(ParseBytes, ReadsBackWholeBytes, ()) {
  const auto bytes = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 62);
  RC_ASSERT(parse_bytes(std::to_string(bytes)).value() == bytes);
}

}  // namespace
}  // namespace shardwright::cli
