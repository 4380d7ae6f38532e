// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace shardwright {
namespace {

using Kind = MappingProblem::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kConfig = R"({"architectures": ["A"], "model_type": "a",
    "num_hidden_layers": 2, "hidden_size": 4, "vocab_size": 6})";

std::string mapping_text(std::string_view rules, std::string_view family = "a") {
  return fmt::format(R"({{"family": "{}", "architectures": ["A"], "model_types": ["a"],
      "sizes": {{"layers": {{"hf": "num_hidden_layers", "args": "num_layers"}},
                 "hidden": {{"hf": "hidden_size", "args": "hidden_size"}},
                 "vocab": {{"hf": "vocab_size", "args": "padded_vocab_size"}}}},
      "indices": {{"layer": {{"size": "layers"}}}},
      "groups": {{"layer": [
        {{"megatron": "fc1", "transform": "concat", "hf": ["gate", "up"],
          "shape": ["2 * hidden", "hidden"]}},
        {{"megatron": "norm", "hf": "norm", "shape": ["hidden"]}}]}},
      "rules": [{}], "ignore": ["inv_freq"]}})",
                     family, rules);
}

constexpr std::string_view kLayers = R"({"use": "layer", "for": "layer",
    "megatron": "decoder.layers.{layer}.", "hf": "l.{layer}."})";

std::vector<TensorDesc> model() {
  std::vector<TensorDesc> tensors;
  for (const char* layer : {"l.0.", "l.1."}) {
    tensors.push_back({layer + std::string("gate"), DType::kBF16, {4, 4}});
    tensors.push_back({layer + std::string("up"), DType::kBF16, {4, 4}});
    tensors.push_back({layer + std::string("norm"), DType::kBF16, {4}});
  }
  return tensors;
}

MappingReport report(std::string_view rules, std::span<const TensorDesc> tensors,
                     std::string_view config = kConfig) {
  const Mapping mapping = parse_mapping(mapping_text(rules), "a.json").value();
  return report_mapping(mapping, read_hf_config(config).value(), tensors).value();
}

TEST(MappingReport, FindsNothingWhereTheMappingFits) {
  std::vector<TensorDesc> tensors = model();
  tensors.push_back({"inv_freq", DType::kF32, {2}});
  const MappingReport fits = report(kLayers, tensors);
  EXPECT_THAT(fits.problems, IsEmpty());
  EXPECT_EQ(fits.hf_tensors, 7U);
  EXPECT_EQ(fits.taken, 7U);
  EXPECT_EQ(fits.megatron_tensors, 4U);
  EXPECT_THAT(fits.ignored, ElementsAre("inv_freq"));
}

TEST(MappingReport, ListsBothSidesOfAWrongNameOnce) {
  std::vector<TensorDesc> tensors = model();
  tensors[0].name = "l.0.gates";
  tensors[3].name = "l.1.gates";
  const MappingReport found = report(kLayers, tensors);
  ASSERT_EQ(found.problems.size(), 2U);
  EXPECT_EQ(found.problems[0].kind, Kind::kMissing);
  EXPECT_THAT(found.problems[0].tensors, ElementsAre("l.0.gate", "l.1.gate"));
  EXPECT_THAT(found.problems[0].rule, HasSubstr("a.json#/groups/layer/0"));
  EXPECT_EQ(found.problems[0].nearest, "l.*.gates");
  EXPECT_EQ(found.problems[1].kind, Kind::kUncovered);
  EXPECT_THAT(found.problems[1].tensors, ElementsAre("l.0.gates", "l.1.gates"));
  EXPECT_EQ(found.problems[1].nearest, "l.*.gate");
  EXPECT_EQ(found.taken, 4U);
}

TEST(MappingReport, TellsShapesWithTheirExpressions) {
  std::vector<TensorDesc> tensors = model();
  tensors[2].shape = {5};
  tensors[3].shape = {4, 3};
  const MappingReport found = report(kLayers, tensors);
  ASSERT_EQ(found.problems.size(), 2U);
  EXPECT_EQ(found.problems[0].kind, Kind::kShape);
  EXPECT_THAT(found.problems[0].reason, HasSubstr("found shape (5,), expected (4,) = (hidden)"));
  EXPECT_THAT(found.problems[0].tensors, ElementsAre("decoder.layers.0.norm"));
  EXPECT_THAT(found.problems[1].reason, HasSubstr("l.1.gate (4, 3)"));
}

TEST(MappingReport, FindsWhatTwoRulesClaim) {
  const std::string rules = std::string(kLayers) + R"(, {"megatron": "first", "hf": "l.0.norm"})";
  MappingReport found = report(rules, model());
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].kind, Kind::kCoveredTwice);
  EXPECT_THAT(found.problems[0].tensors, ElementsAre("l.0.norm"));
  EXPECT_THAT(found.problems[0].rule, HasSubstr("a.json#/rules/1"));
  EXPECT_THAT(found.problems[0].reason, HasSubstr("a.json#/groups/layer/1 takes it too"));

  std::vector<TensorDesc> tensors = model();
  tensors.push_back({"extra", DType::kBF16, {4}});
  found = report(std::string(kLayers) + R"(, {"megatron": "decoder.layers.1.norm", "hf": "extra"})",
                 tensors);
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].kind, Kind::kProducedTwice);
  EXPECT_THAT(found.problems[0].tensors, ElementsAre("decoder.layers.1.norm"));
  EXPECT_THAT(found.problems[0].reason, HasSubstr("makes it too"));
}

TEST(MappingReport, SaysWhatTheConfigLacks) {
  const MappingReport found = report(kLayers, model(), R"({"architectures": ["A"]})");
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].kind, Kind::kConfig);
  EXPECT_THAT(found.problems[0].reason, HasSubstr("num_hidden_layers"));
}

// Five rows become five rows, but the config says that an export has to cut them to six.
TEST(MappingReport, TriesTheWayBack) {
  std::vector<TensorDesc> tensors = model();
  tensors.push_back({"embed", DType::kBF16, {5, 4}});
  const MappingReport found = report(
      std::string(kLayers) + R"(, {"megatron": "e", "hf": "embed", "vocabulary": true})", tensors);
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].kind, Kind::kWayBack);
  EXPECT_THAT(found.problems[0].reason, HasSubstr("found shape (5, 4), expected at least 6 rows"));
}

TEST(MappingReport, NumbersOfNamesAreStars) {
  EXPECT_EQ(numberless("a.12.fc1.w"), "a.*.fc1.w");
  EXPECT_EQ(numberless("3"), "*");
  EXPECT_EQ(numberless("a..b."), "a..b.");
}

}  // namespace
}  // namespace shardwright
