// SPDX-License-Identifier: Apache-2.0
// What a Megatron model lacks of its family is named by verify and noted by convert.
#include <gmock/gmock.h>

#include <algorithm>

#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kMlpNorm = "mlp.linear_fc1.layer_norm_weight";

ConvertRequest torch_dist_of(const std::string& input, const std::string& output) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "torch_dist";
  return request;
}

// A torch_dist checkpoint without the norms in front of its MLPs, made of a golden one of that
// kind.
std::string put_without_norms(const TemporaryFolder& place, const std::string& golden) {
  EXPECT_TRUE(convert_now(torch_dist_of(golden_path(golden), place / "whole")));
  ConvertRequest request = torch_dist_of(place / "whole", place / "part");
  request.exclude = {std::string("*") + kMlpNorm};
  const auto made = convert_now(request);
  EXPECT_TRUE(made) << made.error().text();
  EXPECT_THAT(made->notes, Not(Contains(HasSubstr("needs")))) << "who asks for a part gets it";
  return place / "part";
}

std::vector<std::string> noted_by_convert(const ConvertRequest& request) {
  auto prepared = prepare_conversion(request);
  EXPECT_TRUE(prepared) << prepared.error().text();
  if (!prepared) return {};
  std::erase_if(prepared->notes, [](const auto& note) { return !note.contains(kMlpNorm); });
  return prepared->notes;
}

std::vector<std::string> missing_by_verify(const std::string& path) {
  std::vector<std::string> messages;
  const VerifyReport report = verify_checkpoint(path, {}).value();
  for (const VerifyFinding& finding : report.findings) {
    if (finding.code == Code::kUnmatchedTarget) messages.push_back(finding.message);
  }
  return messages;
}

TEST(LackingTensors, OfAMegatronModelAreToldByBoth) {
  const TemporaryFolder place;
  const std::string part = put_without_norms(place, "hf/llama3/hf");
  const std::vector<std::string> found = missing_by_verify(part);
  EXPECT_THAT(found, ElementsAre(HasSubstr(kMlpNorm)));
  for (const std::string_view format : {"torch_dist", "legacy", "fsdp_dtensor"}) {
    ConvertRequest request = torch_dist_of(part, place / "out");
    request.format = format;
    request.parallel.tensor = format == "fsdp_dtensor" ? 1 : 2;
    EXPECT_EQ(noted_by_convert(request), found) << format;
    request.input = place / "whole";
    EXPECT_THAT(noted_by_convert(request), IsEmpty()) << format;
  }
}

// Where arguments alone would have to tell the family, all would be tried: verify takes that time.
TEST(LackingTensors, AreNotedByConvertWhereTheFamilyIsNamed) {
  const TemporaryFolder place;
  const std::string part = put_without_norms(place, "hf/llama3/legacy_tp2pp2ep1");
  const std::vector<std::string> found = missing_by_verify(part);
  EXPECT_THAT(found, ElementsAre(HasSubstr(kMlpNorm)));
  ConvertRequest request = torch_dist_of(part, place / "out");
  EXPECT_THAT(noted_by_convert(request), IsEmpty());
  request.family = "llama";
  EXPECT_THAT(noted_by_convert(request), ElementsAre(HasSubstr(kMlpNorm)));
}

// Prediction layers that are to be left out are none that the model lacks.
TEST(LackingTensors, AreNoneOfThoseThatAreLeftOut) {
  const TemporaryFolder place;
  ASSERT_TRUE(convert_now(torch_dist_of(golden_path("hf/deepseek_v3_mtp/hf"), place / "whole")));
  ConvertRequest request = torch_dist_of(place / "whole", place / "out");
  request.mtp = MtpPolicy::kDrop;
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes, Not(Contains(HasSubstr("missing"))));
}

// Of what no family is like nobody can say what it lacks.
TEST(LackingTensors, AreNoneOfAnUnknownFamily) {
  const TemporaryFolder place;
  put_model(place / "in", "", {{"decoder.layers.0.new.weight", DType::kF32, {4, 4}}});
  ConvertRequest request = torch_dist_of(place / "in", place / "out");
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes, Not(Contains(HasSubstr("family"))));
}

// Objects that Megatron saves as one set: a state for each layer, one for each rank.
TEST(LackingObjects, OfASetAreToldByBoth) {
  const Planted planted;
  Planted::copy("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full", planted);
  const std::string layer = "decoder.layers.mlp.linear_fc1._extra_state/shard_2_4";
  planted.edit_metadata(
      [&](Catalog& catalog) {
        const auto is_lost = [&](const StoredObject& object) {
          return object.name == layer || object.name == "rng_state/shard_0.0_2.2";
        };
        EXPECT_EQ(std::erase_if(catalog.objects, is_lost), 2U);
      },
      "iter_0000010/");
  std::vector<std::string> lost;
  const VerifyReport report = verify_checkpoint(planted.path(), {}).value();
  for (const VerifyFinding& finding : report.findings) {
    if (finding.code == Code::kModelIncomplete) lost.push_back(finding.message);
  }
  EXPECT_THAT(lost, ElementsAre(HasSubstr(layer), HasSubstr("rng_state/shard_0.0_2.2")));
  // Those of ranks do not go along.
  const TemporaryFolder place;
  const auto done = convert_now(torch_dist_of(planted.path(), place / "out"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(done->notes, Contains(HasSubstr(layer)));
  EXPECT_THAT(done->notes, Not(Contains(HasSubstr("rng_state/shard_0.0_2.2"))));
  EXPECT_FALSE(verify_checkpoint(place / "out", {}).value().has_errors());
}

}  // namespace
}  // namespace shardwright
