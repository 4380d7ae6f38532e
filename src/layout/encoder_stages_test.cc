// SPDX-License-Identifier: Apache-2.0
#include "layout/encoder_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "layout/classify_legacy.h"
#include "layout/legacy_axes.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_run_fixture.h"

namespace shardwright {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A decoder of TP 2 and `pp` stages behind one stage of an encoder with `encoder_tp` ranks.
LegacyEvidence run_with_encoder(std::int64_t pp, std::int64_t encoder_tp) {
  LegacyEvidence evidence;
  evidence.path = "ckpt";
  const SimulatedRun run{2, pp, 1, 1, 2, false};
  const auto add = [&](RankSample sample) {
    sample.run.encoder_stages = 1;
    sample.run.encoder_tensor = encoder_tp;
    evidence.folders.push_back(rank_folder(sample.folder));
    evidence.samples.push_back(std::move(sample));
  };
  for (std::int64_t t = 0; t < encoder_tp; ++t) {
    RankSample sample =
        rank_sample(rank_folder_name({t, 0, 0, 0}, {2, 2}, RankNaming::kMegatron), run, 0);
    sample.models = {
        {{"vision_model.decoder.layers.0.self_attention.linear_proj.weight", {16, 16}}}};
    add(std::move(sample));
  }
  for (std::int64_t p = 0; p < pp; ++p) {
    for (std::int64_t t = 0; t < 2; ++t) {
      add(rank_sample(rank_folder_name({t, p + 1, 0, 0}, {2, pp + 1}, RankNaming::kMegatron), run,
                      p));
    }
  }
  return evidence;
}

Result<LegacyAxes> axes_of(const LegacyEvidence& evidence) {
  LegacyAxesEvidence asked;
  for (const RankSample& sample : evidence.samples) {
    asked.folders.push_back(*parse_rank_folder(sample.folder));
  }
  asked.samples = evidence.samples;
  asked.run = evidence.samples.front().run;
  return settle_legacy_axes(asked);
}

std::vector<std::string> codes(const Diagnosis& diagnosis) {
  std::vector<std::string> found;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.severity != Severity::kInfo) found.push_back(finding.code);
  }
  return found;
}

void lose_folder(LegacyEvidence& evidence, const std::string& name) {
  std::erase_if(evidence.folders, [&](const RankFolder& folder) { return folder.name == name; });
  std::erase_if(evidence.samples, [&](const RankSample& sample) { return sample.folder == name; });
}

TEST(EncoderStages, AreInFrontOfTheDecodersThatArgumentsCount) {
  for (const std::int64_t pp : {1, 2}) {
    for (const std::int64_t encoder_tp : {1, 2}) {
      const LegacyEvidence evidence = run_with_encoder(pp, encoder_tp);
      const auto axes = axes_of(evidence);
      ASSERT_TRUE(axes) << axes.error().text();
      EXPECT_EQ(axes->config.pipeline, pp + 1);
      EXPECT_EQ(axes->encoders.count, 1);
      const auto grid = legacy_grid(axes->config, axes->encoders).value();
      EXPECT_THAT(grid, testing::UnorderedElementsAreArray(axes->ranks));
      const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
      EXPECT_THAT(codes(diagnosis), IsEmpty()) << pp << encoder_tp;
      EXPECT_EQ(diagnosis.complete, true);
      EXPECT_EQ(diagnosis.sizes.pipeline, pp + 1);
    }
  }
}

TEST(EncoderStages, AreMissedWhereAFileOfTheirsIsNotThere) {
  LegacyEvidence evidence = run_with_encoder(2, 2);
  lose_folder(evidence, "mp_rank_01_000");
  const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(codes(diagnosis), Contains("L09"));
  EXPECT_THAT(diagnosis.missing, ElementsAre("mp_rank_01_000"));
  lose_folder(evidence, "mp_rank_00_000");
  EXPECT_THAT(classify_legacy(evidence).diagnosis.missing,
              UnorderedElementsAre("mp_rank_00_000", "mp_rank_01_000"));
}

// Where too little was read for contents to say what the second number is.
TEST(EncoderStages, MakeTheSecondNumberAPipelineRank) {
  LegacyEvidence evidence = run_with_encoder(1, 2);
  keep_samples(evidence, {"mp_rank_00_000"});
  const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(diagnosis.coordinates, ElementsAre("tp", "pp"));
  EXPECT_EQ(diagnosis.complete, true);
}

// Of the decoder, whose layers others share out.
TEST(EncoderStages, HaveNoShareOfTheLayers) {
  LegacyEvidence evidence = run_with_encoder(2, 1);
  for (RankSample& sample : evidence.samples) {
    if (!sample.folder.ends_with("_002")) continue;
    sample.models[0].push_back({"decoder.layers.2.self_attention.linear_proj.weight", {16, 16}});
  }
  std::vector<std::string> texts;
  for (const Finding& finding : classify_legacy(evidence).diagnosis.findings) {
    if (finding.code == "L12" || finding.code == "L13") texts.push_back(finding.message.english);
  }
  EXPECT_THAT(texts, ElementsAre(HasSubstr("[2,3]")));
}

// One rank more than the arguments know.
TEST(EncoderStages, HaveNoOtherRanks) {
  LegacyEvidence evidence = run_with_encoder(2, 2);
  for (RankSample& sample : evidence.samples) sample.run.encoder_tensor = 1;
  const auto axes = axes_of(evidence);
  ASSERT_FALSE(axes);
  EXPECT_EQ(axes.error().code, Code::kLegacyLayout);
  EXPECT_THAT(axes.error().message, HasSubstr("tensor rank 1 and pipeline rank 0, expected 1"));
  const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(codes(diagnosis), Contains("L27"));
  EXPECT_THAT(diagnosis.unexpected, ElementsAre("mp_rank_01_000"));
}

// Arguments that a tool took over from the run that it read.
TEST(EncoderStages, AreNoneWhereTheirFilesHoldTheDecoder) {
  LegacyEvidence evidence = simulate({2, 2, 1, 1, 2, false}, SimulatedWriter::kToday).evidence;
  for (RankSample& sample : evidence.samples) sample.run.encoder_stages = 1;
  const auto axes = axes_of(evidence);
  ASSERT_TRUE(axes) << axes.error().text();
  EXPECT_EQ(axes->config.pipeline, 2);
  EXPECT_EQ(axes->encoders.count, 0);
  EXPECT_THAT(codes(classify_legacy(evidence).diagnosis), IsEmpty());
}

TEST(EncoderStages, NeedANumberInTheNames) {
  LegacyEvidence evidence = simulate({2, 1, 1, 1, 2, false}, SimulatedWriter::kToday).evidence;
  for (RankSample& sample : evidence.samples) sample.run.encoder_stages = 1;
  const auto axes = axes_of(evidence);
  ASSERT_TRUE(axes) << axes.error().text();
  EXPECT_EQ(axes->config.pipeline, 1);
  EXPECT_THAT(codes(classify_legacy(evidence).diagnosis), IsEmpty());
}

// 0 says: as many tensor ranks as the decoder.
TEST(EncoderStages, HaveTheDecodersRanksWhereNothingIsTold) {
  RecordedRun run;
  run.encoder_stages = 2;
  run.sizes.tensor = 4;
  for (const std::optional<std::int64_t> told : {std::optional<std::int64_t>(), {0}, {4}}) {
    run.encoder_tensor = told;
    const EncoderStages stages = encoder_stages(run, {}, 1);
    EXPECT_FALSE(stages.lack({3, 1, 0, 0}));
    EXPECT_TRUE(stages.lack({4, 1, 0, 0}));
    EXPECT_FALSE(stages.lack({4, 2, 0, 0}));
    EXPECT_EQ(stages.with_decoder(3), 5);
    EXPECT_EQ(stages.with_decoder(std::nullopt), std::nullopt);
  }
}

}  // namespace
}  // namespace shardwright
