// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/golden.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"
#include "testing/tensor_records.h"

namespace shardwright {
namespace {

using testing::Contains;

class Mxfp4 : public testing::TestWithParam<ParallelConfig> {};

// What Megatron-Bridge made of the fp4 pairs, at any layout, straight from the quantised files.
TEST_P(Mxfp4, IsWhatTheBridgeMade) {
  const std::string golden = golden_path("hf/gpt_oss_mxfp4");
  const TemporaryFolder out;
  ConvertRequest request;
  request.input = golden + "/hf";
  request.output = out / "megatron";
  request.parallel = GetParam();
  const auto conversion = convert_now(request);
  ASSERT_TRUE(conversion) << conversion.error().text();
  EXPECT_THAT(conversion->notes, Contains("dequantised 4 tensors: mxfp4 to bfloat16"));
  EXPECT_THAT(
      conversion->renames,
      Contains(testing::Field(&RenamedTensor::source,
                              Contains("model.layers.1.mlp.experts.down_proj_blocks").Times(1))));
  EXPECT_THAT(
      conversion->renames,
      Contains(testing::Field(&RenamedTensor::source,
                              Contains("model.layers.1.mlp.experts.down_proj_scales").Times(1))));
  // Each stored byte counts once, scales included.
  std::uint64_t stored = 0;
  for (const StoredTensor& tensor : conversion->source.catalog.tensors) {
    stored += tensor.chunks.range(0).length;
  }
  // But for config.json, which is written anew without its quantisation.
  for (const auto& [name, artifact] : conversion->source.artifacts) {
    if (name != "config.json") stored += artifact.range.length;
  }
  EXPECT_EQ(cost_of(conversion->plan).payload_bytes_read, stored);

  const TensorMap got = read_all_tensors(out / "megatron").value();
  const auto records = read_tensor_records(golden + "/megatron_global.json");
  EXPECT_EQ(got.size(), records.size());
  for (const auto& [name, record] : records) {
    const auto found = got.find(name);
    ASSERT_NE(found, got.end()) << name;
    EXPECT_EQ(safetensors_name(found->second.dtype), record.dtype) << name;
    EXPECT_EQ(content_digest(found->second.bytes), record.digest) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Mxfp4,
                         testing::Values(ParallelConfig{}, ParallelConfig{2, 2, 1, 2, 2},
                                         ParallelConfig{2, 1, 1, 4, 1},
                                         ParallelConfig{4, 1, 1, 1, 4}),
                         [](const auto& test) {
                           return fmt::format("tp{}pp{}ep{}", test.param.tensor,
                                              test.param.pipeline, test.param.expert);
                         });

TEST(Quantise, IsRefusedWhereNothingIsStoredSo) {
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = "/nowhere/out";
  request.quantise = WeightForm::kFp8Block;
  request.format = "torch_dist";
  const auto megatron = prepare_conversion(request);
  ASSERT_FALSE(megatron);
  EXPECT_EQ(megatron.error().code, Code::kUsage);
  EXPECT_THAT(megatron.error().message, testing::HasSubstr("does not apply to --to torch_dist"));
  request.format = "hf";
  request.averaged = {request.input};
  const auto mean = prepare_conversion(request);
  ASSERT_FALSE(mean);
  EXPECT_EQ(mean.error().code, Code::kUsage);
  EXPECT_THAT(mean.error().message, testing::HasSubstr("average first"));
}

}  // namespace
}  // namespace shardwright
