// SPDX-License-Identifier: Apache-2.0
#include "verify/digest_comparison.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kMoment = "optimizer.state.exp_avg.decoder.final_layernorm.weight";
const std::string kSquare = "optimizer.state.exp_avg_sq.decoder.final_layernorm.weight";
const std::string kBucket = "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.exp_avg";

HashReport listing(const std::vector<std::string>& beside) {
  const auto entry = [](const std::string& name) {
    return TensorHash{{name, DType::kF32, {4}}, std::string(32, 'a')};
  };
  HashReport report;
  report.path = "sums.json";
  report.model.push_back(entry("decoder.final_layernorm.weight"));
  for (const std::string& name : beside) report.beside.push_back(entry(name));
  return report;
}

VerifyReport compared(const HashReport& found, const HashReport& expected) {
  VerifyReport report;
  compare_digests_of(found, expected, report);
  return report;
}

std::vector<std::string> errors_of(const VerifyReport& report) {
  std::vector<std::string> objects;
  for (const VerifyFinding& finding : report.findings) {
    EXPECT_EQ(finding.code, Code::kDigestMismatch);
    if (finding.severity == Severity::kError) objects.push_back(finding.object);
  }
  return objects;
}

TEST(CompareDigests, FindsAStateThatOneOfTwoLacks) {
  const HashReport all = listing({kMoment, kSquare});
  const HashReport one = listing({kMoment});
  EXPECT_THAT(compared(all, all).findings, IsEmpty());
  EXPECT_EQ(compared(all, all).proven.size(), 1U);
  EXPECT_THAT(errors_of(compared(one, all)), ElementsAre(kSquare));
  EXPECT_THAT(errors_of(compared(all, one)), ElementsAre(kSquare));
  EXPECT_THAT(compared(one, all).proven, IsEmpty());
}

// Weights alone are another form of the same model.
TEST(CompareDigests, TellsStatesThatOnlyOneSideHas) {
  for (const auto& [found, expected] : {std::pair{listing({}), listing({kMoment, kSquare})},
                                        {listing({kMoment, kSquare}), listing({})}}) {
    const VerifyReport report = compared(found, expected);
    EXPECT_THAT(report.findings, IsEmpty());
    EXPECT_THAT(report.notes,
                ElementsAre("2 optimizer states are not compared: only one side has any"));
    EXPECT_EQ(report.proven.size(), 1U);
  }
}

// Both have states, those of one side could not be read: that is not that it has none.
TEST(CompareDigests, FindsStatesThatWereLeftOut) {
  HashReport torn = listing({});
  torn.path = "torn";
  torn.states_left = "no chunk holds them";
  for (const auto& [found, expected] :
       {std::pair{torn, listing({kMoment})}, {listing({kMoment}), torn}, {torn, torn}}) {
    const VerifyReport report = compared(found, expected);
    EXPECT_THAT(errors_of(report), ElementsAre("torn"));
    EXPECT_THAT(report.proven, IsEmpty());
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].message,
              "torn: its optimizer states are not compared: no chunk holds them");
  }
  EXPECT_THAT(compared(torn, listing({})).findings, IsEmpty());
}

TEST(CompareDigests, WarnsOfStatesOfTwoKinds) {
  for (const auto& [found, expected] : {std::pair{listing({kBucket}), listing({kMoment})},
                                        {listing({kMoment}), listing({kBucket})}}) {
    const VerifyReport report = compared(found, expected);
    EXPECT_THAT(errors_of(report), IsEmpty());
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_THAT(report.findings[0].message, HasSubstr("2 optimizer states are not compared"));
  }
  EXPECT_THAT(errors_of(compared(listing({kBucket}), listing({kBucket + "_sq"}))),
              ElementsAre(kBucket + "_sq", kBucket));
}

TEST(CompareDigests, TellsWhatOnlyHuggingFaceStores) {
  const VerifyReport report =
      compared(listing({"hf_extra.a", "hf_extra.b"}), listing({"hf_extra.a"}));
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_THAT(report.notes, Contains(HasSubstr("1 values that only Hugging Face stores")));
}

}  // namespace
}  // namespace shardwright
