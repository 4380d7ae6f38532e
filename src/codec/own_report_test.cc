// SPDX-License-Identifier: Apache-2.0
#include "codec/own_report.h"

#include <gtest/gtest.h>

#include <string>

namespace shardwright {
namespace {

TEST(OwnReport, IsKnownByItsBeginning) {
  EXPECT_TRUE(is_own_report("2026-01-31T12:00:00Z shardwright 0.1.0: convert a b"));
  EXPECT_TRUE(is_own_report("{\n \"schema\": \"shardwright/saved-plan/1\",\n \"version\""));
  EXPECT_TRUE(is_own_report("{\n  \"schema\": \"shardwright/hash/1\",\n  \"algorithm\""));
  EXPECT_TRUE(is_own_report("{\"schema\":\"shardwright/verify/1\"}"));
  EXPECT_TRUE(is_own_report("<!doctype html>\n<title>shardwright</title>"));
}

TEST(OwnReport, IsNothingThatAModelNeeds) {
  EXPECT_FALSE(is_own_report(""));
  EXPECT_FALSE(is_own_report("{}"));
  EXPECT_FALSE(is_own_report("2026-01-31T12:00:00Z epoch 1")) << "another program's log";
  EXPECT_FALSE(is_own_report("{\"schema\": \"shardwright/source_keys/1\"}"));
  EXPECT_FALSE(is_own_report("{\"schema\": \"shardwright/components/1\"}"));
  EXPECT_FALSE(is_own_report("{\"schema\": \"shardwright/digests/1\"}"));
  EXPECT_FALSE(is_own_report("{\"schema\": \"shardwright"));
  EXPECT_FALSE(is_own_report("{\"model\": 1, \"schema\": \"shardwright/hash/1\"}"));
  EXPECT_FALSE(is_own_report(std::string(kReportHeadBytes, ' ') + "<title>shardwright</title>"));
}

TEST(OwnReport, LogsBeginWithATime) {
  EXPECT_TRUE(is_log("2026-01-31T12:00:00Z anything"));
  EXPECT_FALSE(is_log("2026-01-31 12:00:00Z anything"));
  EXPECT_FALSE(is_log("2026-01-31T12:00:00Z"));
}

}  // namespace
}  // namespace shardwright
