// SPDX-License-Identifier: Apache-2.0
// What the caller's sizes ask for, and what the checkpoint needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "layout/classify_legacy.h"
#include "layout/legacy_run_fixture.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr SimulatedRun kAskedDense{2, 2, 1, 1, 2, false};
constexpr SimulatedRun kAskedExperts{2, 1, 1, 4, 2, true};

LegacyEvidence asked_of(const SimulatedRun& run, AxisSizes believed = {}) {
  LegacyEvidence evidence = simulate(run, SimulatedWriter::kToday).evidence;
  evidence.believed = believed;
  return evidence;
}

// The same folders with files that nobody can read.
LegacyEvidence unreadable(const SimulatedRun& run, AxisSizes believed = {}) {
  LegacyEvidence evidence = asked_of(run, believed);
  for (const RankSample& sample : evidence.samples) {
    evidence.unreadable.push_back({sample.folder + "/model_optim_rng.pt", "error[SW0210]: cut"});
  }
  evidence.samples.clear();
  return evidence;
}

const Finding* find(const Diagnosis& diagnosis, std::string_view code) {
  const auto found = std::ranges::find(diagnosis.findings, code, &Finding::code);
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

std::string evidence_of(const Diagnosis& diagnosis) {
  std::string text;
  for (const Phrase& phrase : diagnosis.evidence) text += phrase.english + "|" + phrase.chinese;
  return text;
}

TEST(LegacyAsked, ASoundCheckpointIsNoErrorForWhoAsksNothing) {
  const Diagnosis diagnosis = classify_legacy(asked_of(kAskedExperts)).diagnosis;
  EXPECT_FALSE(diagnosis.has_errors());
  ASSERT_NE(find(diagnosis, "L19"), nullptr);
  EXPECT_EQ(find(diagnosis, "L19")->severity, Severity::kInfo);
  EXPECT_THAT(diagnosis.next, HasSubstr("shardwright convert"));
  const Diagnosis asked = classify_legacy(asked_of(kAskedExperts, {.expert = 1})).diagnosis;
  EXPECT_EQ(find(asked, "L19")->severity, Severity::kError);
}

TEST(LegacyAsked, TheLoaderIsTheCheckpointsWhateverTheCallerSays) {
  for (const AxisSizes& believed :
       {AxisSizes{}, AxisSizes{.expert = 4}, AxisSizes{.tensor = 2, .expert = 1}}) {
    const Diagnosis experts = classify_legacy(asked_of(kAskedExperts, believed)).diagnosis;
    EXPECT_EQ(experts.loader, Loader::kExpertAware);
    EXPECT_THAT(evidence_of(experts), HasSubstr("experts|MoE"));
    const Diagnosis dense = classify_legacy(asked_of(kAskedDense, believed)).diagnosis;
    EXPECT_EQ(dense.loader, Loader::kNonExpert);
    EXPECT_THAT(evidence_of(dense), HasSubstr("a dense model: no tensor belongs to an expert"));
  }
}

TEST(LegacyAsked, ThePatternIsThatOfTheSizesGiven) {
  const Diagnosis none = classify_legacy(asked_of(kAskedDense)).diagnosis;
  EXPECT_EQ(none.expected_pattern, "mp_rank_{tp:02d}_{pp:03d}");
  const Diagnosis flat = classify_legacy(asked_of(kAskedDense, {.pipeline = 1})).diagnosis;
  EXPECT_EQ(flat.expected_pattern, "mp_rank_{tp:02d}");
  EXPECT_EQ(flat.disk_pattern, "mp_rank_{tp:02d}_{pp:03d}");
  EXPECT_TRUE(flat.has_errors());
  EXPECT_EQ(find(flat, "L42"), nullptr) << "what the files say is said better";
  const Diagnosis deep =
      classify_legacy(asked_of(kAskedExperts, {.pipeline = 2, .expert = 4})).diagnosis;
  EXPECT_EQ(deep.expected_pattern, "mp_rank_{tp:02d}_{pp:03d}_{ep:03d}");
  EXPECT_TRUE(deep.has_errors());
}

TEST(LegacyAsked, NamesAreCheckedWhereNoFileCanBeRead) {
  const Diagnosis three =
      classify_legacy(unreadable({2, 2, 1, 2, 2, true}, {.tensor = 2, .pipeline = 2})).diagnosis;
  EXPECT_EQ(three.expected_pattern, "mp_rank_{tp:02d}_{pp:03d}_{ep:03d}");
  EXPECT_EQ(find(three, "L42"), nullptr) << "sizes that are not given are those on disk";
  const Diagnosis one =
      classify_legacy(unreadable({2, 1, 1, 1, 2, false}, {.tensor = 2, .pipeline = 2})).diagnosis;
  EXPECT_EQ(one.expected_pattern, "mp_rank_{tp:02d}_{pp:03d}");
  EXPECT_EQ(one.disk_pattern, "mp_rank_{tp:02d}");
  EXPECT_NE(one.confidence, Confidence::kCertain) << "nothing but names";
  const Diagnosis both =
      classify_legacy(unreadable(kAskedDense, {.tensor = 2, .pipeline = 2, .expert = 2})).diagnosis;
  EXPECT_EQ(both.expected_pattern, "mp_rank_{tp:02d}_{pp:03d}_{ep:03d}");
  ASSERT_NE(find(both, "L42"), nullptr);
  EXPECT_EQ(both.loader, Loader::kNone) << "nothing was read";
  EXPECT_EQ(find(both, "L42")->severity, Severity::kError);
  EXPECT_TRUE(both.has_errors());
}

}  // namespace
}  // namespace shardwright
