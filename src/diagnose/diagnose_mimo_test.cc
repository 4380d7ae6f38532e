// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/golden.h"
#include "layout/component_spec.h"
#include "shardwright/diagnose.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// As Megatron-Bridge writes it.
constexpr const char* kRunConfig = R"(model:
  _target_: megatron.bridge.models.megatron_mimo.megatron_mimo_provider.MegatronMIMOProvider
  megatron_mimo_parallelism_config:
    module_parallelisms:
      images:
        _target_: megatron.bridge.models.megatron_mimo.megatron_mimo_config.ModuleParallelismConfig
        context_parallel_size: 1
        data_parallel_size: 4
        expert_model_parallel_size: 1
        expert_tensor_parallel_size: 1
        pipeline_model_parallel_size: 1
        rank_offset: 8
        tensor_model_parallel_size: 2
      language:
        data_parallel_size: 1
        rank_offset: 0
        tensor_model_parallel_size: 4
)";

class DiagnoseMimo : public testing::Test {
 protected:
  void SetUp() override {
    ConvertRequest request;
    request.input = golden_path("hf/qwen3_vl/hf");
    request.output = out_ / "x";
    request.format = "mimo";
    const std::vector<std::string> layout = {"language=tp=2,pp=3", "images=tp=1,dp=2"};
    request.components = parse_components(layout).value();
    ASSERT_TRUE(convert_now(request));
  }
  Diagnosis diagnosed() const { return diagnose({out_ / "x", {}}).value(); }
  static std::vector<std::string> english(const Diagnosis& diagnosis) {
    std::vector<std::string> texts;
    for (const Phrase& phrase : diagnosis.evidence) texts.push_back(phrase.english);
    return texts;
  }
  static std::vector<std::string> table_findings(const Diagnosis& diagnosis) {
    std::vector<std::string> texts;
    for (const Finding& finding : diagnosis.findings) {
      if (finding.code == "L50") texts.push_back(finding.message.english);
    }
    return texts;
  }
  // What the table says, with one text in the place of another.
  void put_table(const std::string& from, const std::string& to) {
    std::string table = out_.get(table_);
    const std::size_t at = table.find(from);
    ASSERT_NE(at, std::string::npos);
    out_.put(table_, table.replace(at, from.size(), to));
  }
  const RecordedComponent& component(const Diagnosis& diagnosis, const std::string& name) {
    for (const RecordedComponent& each : diagnosis.components) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << name;
    return diagnosis.components.front();
  }

  const std::string table_ = "x/iter_0000000/components.json";
  TemporaryFolder out_;
};

TEST_F(DiagnoseMimo, ReadsTheTableBesideTheData) {
  const Diagnosis diagnosis = diagnosed();
  EXPECT_EQ(diagnosis.format, "mimo");
  EXPECT_EQ(diagnosis.complete, true);
  EXPECT_EQ(diagnosis.sizes, AxisSizes());
  const RecordedComponent& language = component(diagnosis, "language");
  EXPECT_EQ(language.sizes, (AxisSizes{2, 3, {}, 1, 1, 1}));
  EXPECT_EQ(language.rank_offset, 0);
  EXPECT_GT(language.tensors, 10U);
  EXPECT_TRUE(diagnosis.findings.empty());
  const RecordedComponent& images = component(diagnosis, "images");
  EXPECT_EQ(images.sizes, (AxisSizes{1, 1, {}, 1, 1, 2}));
  EXPECT_EQ(images.rank_offset, 6);
  EXPECT_EQ(images.context, 1);
}

TEST_F(DiagnoseMimo, ElseTheRunConfig) {
  std::filesystem::remove(out_ / table_);
  out_.put("x/iter_0000000/run_config.yaml", kRunConfig);
  const Diagnosis diagnosis = diagnosed();
  EXPECT_EQ(diagnosis.format, "mimo");
  EXPECT_EQ(component(diagnosis, "images").sizes, (AxisSizes{2, 1, {}, 1, 1, 4}));
  EXPECT_EQ(component(diagnosis, "images").rank_offset, 8);
  EXPECT_EQ(component(diagnosis, "language").sizes.tensor, 4);
  EXPECT_EQ(component(diagnosis, "language").sizes.pipeline, std::nullopt);
}

TEST_F(DiagnoseMimo, ElseTellsThatNobodyKnows) {
  std::filesystem::remove(out_ / table_);
  const Diagnosis diagnosis = diagnosed();
  EXPECT_EQ(diagnosis.format, "mimo");
  EXPECT_EQ(component(diagnosis, "images").sizes, AxisSizes());
  EXPECT_GT(component(diagnosis, "images").tensors, 10U);
  EXPECT_THAT(english(diagnosis), Contains(HasSubstr("nothing records the components' sizes")));
}

TEST_F(DiagnoseMimo, ABrokenTableIsToldAndNotBelieved) {
  for (const char* broken :
       {"{", "[]", R"({"schema": "shardwright/components/1"})",
        R"({"schema": "shardwright/components/1", "components": [{"tp": 1}]})",
        R"({"schema": "shardwright/components/1", "components": [{"name": "a", "tp": -1}]})",
        R"({"schema": "other", "components": []})"}) {
    out_.put(table_, broken);
    const Diagnosis diagnosis = diagnosed();
    EXPECT_EQ(diagnosis.format, "mimo");
    EXPECT_THAT(table_findings(diagnosis), ElementsAre(HasSubstr("components.json"))) << broken;
    EXPECT_EQ(component(diagnosis, "language").sizes, AxisSizes());
  }
}

TEST_F(DiagnoseMimo, AComponentWithoutTensorsIsMissing) {
  ASSERT_NO_FATAL_FAILURE(put_table("\"images\"", "\"audio\""));
  const Diagnosis diagnosis = diagnosed();
  EXPECT_THAT(table_findings(diagnosis),
              ElementsAre(HasSubstr("component audio has no tensors here"),
                          HasSubstr("component images is missing, which tensors belong to")));
  EXPECT_EQ(diagnosis.complete, false);
  EXPECT_THAT(english(diagnosis), Contains("component audio of the run has no tensors here"));
}

TEST_F(DiagnoseMimo, TellsOfSizesThatAreNotThoseOfTheRanks) {
  ASSERT_NO_FATAL_FAILURE(put_table("\"tp\": 1", "\"tp\": 2"));
  EXPECT_THAT(table_findings(diagnosed()),
              ElementsAre(HasSubstr("component images: found 2 ranks, expected 4")));
}

TEST_F(DiagnoseMimo, TellsOfRanksOfTwoComponents) {
  ASSERT_NO_FATAL_FAILURE(put_table("\"rank_offset\": 6", "\"rank_offset\": 3"));
  EXPECT_THAT(table_findings(diagnosed()), ElementsAre(HasSubstr("components.json")));
}

// Its names may be those of several families' models.
TEST_F(DiagnoseMimo, WhatOnlyAConfigSettlesIsAskedFor) {
  ConvertRequest request;
  request.input = out_ / "x";
  request.output = out_ / "flat";
  request.format = "safetensors";
  ASSERT_TRUE(convert_now(request));
  const Diagnosis diagnosis = diagnose({out_ / "flat"}).value();
  EXPECT_EQ(diagnosis.next,
            "shardwright convert " + (out_ / "flat") + " OUT --to torch_dist --hf-config MODEL");
  EXPECT_TRUE(diagnosis.findings.empty());
}

}  // namespace
}  // namespace shardwright
