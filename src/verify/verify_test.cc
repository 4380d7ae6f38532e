// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

VerifyReport verify(const std::string& path, const VerifyOptions& options = {}) {
  const auto report = verify_checkpoint(path, options);
  EXPECT_TRUE(report) << (report ? "" : report.error().text());
  return report.value_or(VerifyReport{});
}

std::vector<Code> codes_of(const VerifyReport& report) {
  std::vector<Code> codes;
  for (const VerifyFinding& finding : report.findings) codes.push_back(finding.code);
  return codes;
}

// What the real software wrote is right.
TEST(Verify, FindsNothingInSoundCheckpoints) {
  for (const char* path : {"hf/llama3/hf", "hf/llama3/legacy_tp2pp2ep1",
                           "hf/llama3_4l/legacy_tp1pp2ep1vpp2", "hf/mixtral/hf", "hf/qwen3_moe/hf",
                           "hf/deepseek_v3/hf", "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full",
                           "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket",
                           "mcore/dense_te/v0.20.0dev/tp2pp1dp2-torch_dist-full"}) {
    const VerifyReport report = verify(golden_path(path));
    for (const VerifyFinding& finding : report.findings) {
      ADD_FAILURE() << path << ": " << finding.message;
    }
    EXPECT_THAT(report.proven, Contains(HasSubstr("are stored exactly once"))) << path;
  }
}

TEST(Verify, CollectsEverythingThatIsWrong) {
  const Planted planted;
  Planted::convert("hf/llama3/hf", TargetFormat::kTorchDist, {2, 2, 1, 1, 2}, planted.path());
  const auto norm = show_tensor(planted.path(), "decoder.final_layernorm.weight", {}).value();
  planted.flip("iter_0000000/" + norm.files[0], norm.chunks[0].range.offset);
  planted.edit_metadata([](Catalog& catalog) {
    edit_chunks(catalog, "output_layer.weight", [](auto& chunks) { chunks.pop_back(); });
    edit_chunks(catalog, "decoder.layers.self_attention.linear_qkv.weight",
                [](auto& chunks) { chunks.back().box.origin[1] += 8; });
    edit_chunks(catalog, "decoder.layers.self_attention.linear_proj.weight",
                [](auto& chunks) { chunks.back().box.origin[2] -= 8; });
  });
  planted.put("latest_checkpointed_iteration.txt", "12");
  const VerifyReport report = verify(planted.path() + "/iter_0000000");
  EXPECT_THAT(codes_of(report),
              ::testing::IsSupersetOf({Code::kPayloadDamaged, Code::kHole, Code::kOutOfBounds,
                                       Code::kOverlap, Code::kTrackerBroken}));
  EXPECT_TRUE(report.has_errors());
}

TEST(Verify, SaysWhatGuardsThePayload) {
  const VerifyReport hf = verify(golden_path("hf/llama3/hf"));
  EXPECT_THAT(hf.notes, Contains(HasSubstr("nothing guards that of safetensors files")));
  EXPECT_EQ(hf.payloads_checked, 0u);
  const VerifyReport legacy = verify(golden_path("hf/llama3/legacy_tp2pp2ep1"));
  EXPECT_GT(legacy.payloads_checked, 50u);
  EXPECT_THAT(legacy.proven, Contains(HasSubstr("the CRC-32 of")));
}

TEST(Verify, AgainstAManifestFindsOneFlippedByte) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  planted.put("../sums.json", write_manifest(hash_checkpoint(planted.path(), {}).value()));
  VerifyOptions options;
  options.against = planted.place() / "sums.json";
  EXPECT_FALSE(verify(planted.path(), options).has_errors());
  planted.flip("model.safetensors", planted.get("model.safetensors").size() - 1);
  EXPECT_FALSE(verify(planted.path()).has_errors()) << "nothing else can know";
  const VerifyReport report = verify(planted.path(), options);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, Code::kDigestMismatch);
  EXPECT_THAT(report.findings[0].message, HasSubstr("its elements differ"));
}

TEST(Verify, AgainstAnotherFormOfTheModel) {
  VerifyOptions options;
  options.against = golden_path("hf/llama3/hf");
  const VerifyReport same = verify(golden_path("hf/llama3/legacy_tp2pp2ep1"), options);
  EXPECT_FALSE(same.has_errors());
  EXPECT_THAT(same.proven, Contains(HasSubstr("21 digests are those of")));
  options.against = golden_path("hf/llama3_4l/hf");
  const VerifyReport other = verify(golden_path("hf/llama3/legacy_tp2pp2ep1"), options);
  EXPECT_THAT(codes_of(other), Contains(Code::kDigestMismatch));
}

// The ranks of a legacy checkpoint that should hold the same norms.
TEST(Verify, FindsRanksThatDriftedApart) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  const auto norm = show_tensor(planted.path(), "model.norm.weight", {}).value();
  planted.flip("model.safetensors", norm.chunks[0].range.offset + 6);
  ConvertRequest request;
  request.input = planted.path();
  request.output = planted.place() / "other";
  request.format = TargetFormat::kLegacy;
  request.parallel.tensor = 2;
  request.parallel.expert_tensor = 2;
  ASSERT_TRUE(convert_now(request));
  request.input = golden_path("hf/llama3/hf");
  request.output = planted.place() / "mixed";
  ASSERT_TRUE(convert_now(request));
  const std::string rank = "/iter_0000000/mp_rank_01/model_optim_rng.pt";
  planted.put("../mixed" + rank, planted.get("../other" + rank));
  const VerifyReport report = verify(planted.place() / "mixed");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, Code::kReplicasDiffer);
  EXPECT_THAT(report.findings[0].message, HasSubstr("final_layernorm"));
}

// The same, where each rank's copy has a name of its own.
TEST(Verify, FindsNamedReplicasThatDriftedApart) {
  EXPECT_FALSE(verify(golden_path("replica/sound")).has_errors());
  const VerifyReport report = verify(golden_path("replica/diverged"));
  ASSERT_EQ(report.findings.size(), 2u);
  for (const VerifyFinding& finding : report.findings) {
    EXPECT_EQ(finding.code, Code::kReplicasDiffer);
    EXPECT_THAT(finding.message, HasSubstr("__tp_replica_1: found "));
  }
  EXPECT_THAT(report.findings[0].message, HasSubstr("first at (2, 0)"));
  EXPECT_THAT(report.findings[1].message, HasSubstr("found 1 elements"));
  EXPECT_THAT(report.findings[1].message, HasSubstr("first at (3,)"));
}

TEST(Verify, FindsLostExpertsOfLocalNumbers) {
  EXPECT_FALSE(verify(golden_path("dcp/mlite_sound")).has_errors());
  const VerifyReport report = verify(golden_path("dcp/mlite_lost_experts"));
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].code, Code::kModelIncomplete);
  EXPECT_THAT(report.findings[0].message, HasSubstr("found 2 experts, expected 4"));
}

TEST(Verify, FailsWhereThereIsNothingToProve) {
  const Planted planted;
  const auto missing = verify_checkpoint(planted.path(), {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  std::filesystem::create_directories(planted.path());
  EXPECT_EQ(verify_checkpoint(planted.path(), {}).error().code, Code::kUnknownFormat);
}

}  // namespace
}  // namespace shardwright
