// SPDX-License-Identifier: Apache-2.0
// The shipped mapping files against imports that Megatron-Bridge and mbridge made, row by row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "layout/lost_parts.h"
#include "model/apply.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

std::vector<std::string> desc_lines(const std::vector<TensorDesc>& tensors) {
  std::vector<std::string> lines;
  for (const TensorDesc& desc : tensors) {
    lines.push_back(desc.name + " " + std::string(torch_name(desc.dtype)) + to_string(desc.shape));
  }
  std::ranges::sort(lines);
  return lines;
}

std::vector<TensorDesc> descs_of(const std::vector<MappedTensor>& tensors) {
  std::vector<TensorDesc> descs;
  for (const MappedTensor& tensor : tensors) descs.push_back(tensor.desc);
  return descs;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    golden_ = load_golden(GetParam());
    const auto sizes = sizes_from_hf_config(*golden_.mapping, golden_.config);
    ASSERT_TRUE(sizes) << sizes.error().message;
    sizes_ = *sizes;
    auto mapped = map_from_hf(*golden_.mapping, sizes_, golden_.hf);
    ASSERT_TRUE(mapped) << mapped.error().message;
    from_hf_ = *std::move(mapped);
  }

  GoldenFamily golden_;
  ModelSizes sizes_;
  Correspondence from_hf_;
};

TEST_P(Golden, GivesTheRecordedTensors) {
  EXPECT_EQ(desc_lines(descs_of(from_hf_.megatron)), desc_lines(golden_.canonical));
}

/// Families whose Megatron rows are HF rows; of the others the bytes tell (convert_test).
class GoldenRows : public Golden {};

TEST_P(GoldenRows, TakesEveryRowFromWhereTheRecordSays) {
  const RowOrigins recorded = recorded_origins(golden_.folder);
  const RowOrigins ours = block_origins(from_hf_);
  EXPECT_GT(recorded.size(), 1000U);
  EXPECT_EQ(ours.size(), recorded.size());
  for (const auto& [row, origin] : recorded) {
    const auto found = ours.find(row);
    ASSERT_NE(found, ours.end()) << row;
    ASSERT_EQ(found->second, origin) << row;
  }
}

TEST_P(Golden, ReadsTheSameInReverse) {
  const auto back = map_from_megatron(*golden_.mapping, sizes_, golden_.canonical);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(tensor_lines(back->hf), tensor_lines(from_hf_.hf));
  EXPECT_EQ(tensor_lines(back->megatron), tensor_lines(from_hf_.megatron));
  EXPECT_EQ(block_lines(*back), block_lines(from_hf_));
}

TEST_P(Golden, ExportsExactlyTheTensorsThatWereImported) {
  const HfWanted wanted{golden_.hf};
  const auto back = map_from_megatron(*golden_.mapping, sizes_, golden_.canonical, &wanted);
  ASSERT_TRUE(back) << back.error().message;
  std::vector<TensorDesc> written = descs_of(back->hf);
  for (const HfCopy& copy : back->copies) written.push_back(copy.desc);
  EXPECT_EQ(desc_lines(written), desc_lines(golden_.hf));
}

TEST_P(Golden, IsFoundAgainByItsArgumentsAndTensors) {
  const auto args = args_from_hf_config(*golden_.mapping, golden_.config);
  ASSERT_TRUE(args) << args.error().message;
  const Arguments values(args->values.begin(), args->values.end());
  const auto family = find_family(shipped_mappings(), values, golden_.canonical);
  ASSERT_TRUE(family) << family.error().message;
  EXPECT_EQ((*family)->family, golden_.mapping->family);
  const auto sizes = sizes_from_args(*golden_.mapping, values);
  ASSERT_TRUE(sizes) << sizes.error().message;
  for (const auto& [name, value] : sizes_) {
    const auto rule = std::ranges::find(golden_.mapping->sizes, name, &SizeRule::name);
    const bool is_of_config_alone =
        rule != golden_.mapping->sizes.end() && rule->optional && rule->args.empty();
    if (is_of_config_alone) continue;
    EXPECT_EQ(sizes->at(name), value) << name;
  }
}

TEST_P(Golden, HasLostNothing) {
  const std::vector<LostPart> lost = lost_parts(golden_.canonical, 0);
  EXPECT_TRUE(lost.empty()) << lost.front().what;
}

TEST_P(Golden, IsNearToItselfWithoutATensor) {
  const auto args = args_from_hf_config(*golden_.mapping, golden_.config);
  ASSERT_TRUE(args) << args.error().message;
  const Arguments values(args->values.begin(), args->values.end());
  std::vector<TensorDesc> part = golden_.canonical;
  const auto norm = std::ranges::find_if(part, [](const TensorDesc& desc) {
    return desc.name.ends_with("decoder.final_layernorm.weight") ||
           desc.name.ends_with("decoder.final_norm.weight");
  });
  ASSERT_NE(norm, part.end());
  const std::string lost = norm->name;
  part.erase(norm);
  const auto family = find_family(shipped_mappings(), values, part);
  ASSERT_FALSE(family);
  EXPECT_EQ(family.error().code, Code::kUnmatchedTarget);
  EXPECT_NE(family.error().message.find("needs 1 more: " + lost), std::string::npos)
      << family.error().message;
  // Of which most is missing may be of any family.
  part.resize(1);
  EXPECT_EQ(find_family(shipped_mappings(), values, part).error().code, Code::kNoFamily);
}

TEST_P(Golden, SynthesisesAConfigThatDescribesTheSameModel) {
  const auto args = args_from_hf_config(*golden_.mapping, golden_.config);
  ASSERT_TRUE(args) << args.error().message;
  const Arguments values(args->values.begin(), args->values.end());
  const auto text = config_from_args(*golden_.mapping, values);
  ASSERT_TRUE(text) << text.error().message;
  const auto again = read_hf_config(text->json);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->architectures, golden_.config.architectures);
  for (const auto& [key, value] : again->values) {
    const auto original = golden_.config.values.find(key);
    if (original == golden_.config.values.end() || key == "head_dim") continue;
    EXPECT_TRUE(same_value(original->second, value))
        << key << ": " << to_string(value) << ", was " << to_string(original->second);
  }
  const auto sizes = sizes_from_hf_config(*golden_.mapping, *again);
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(*sizes, sizes_);
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(golden_folders()),
                         [](const auto& family) { return family.param; });
INSTANTIATE_TEST_SUITE_P(Families, GoldenRows, testing::ValuesIn(golden_folders_with_rows()),
                         [](const auto& family) { return family.param; });

TEST(GoldenMtp, TheLayersOwnEmbeddingAndHeadAreCopies) {
  const GoldenFamily golden = load_golden("deepseek_v3_mtp");
  const auto sizes = sizes_from_hf_config(*golden.mapping, golden.config);
  const auto mapped = map_from_hf(*golden.mapping, *sizes, golden.hf);
  ASSERT_TRUE(mapped);
  ASSERT_EQ(mapped->copies.size(), 2U);
  EXPECT_EQ(mapped->copies[0].desc.name, "model.layers.3.embed_tokens.weight");
  EXPECT_EQ(mapped->copies[0].original, "model.embed_tokens.weight");
  EXPECT_EQ(mapped->copies[1].desc.name, "model.layers.3.shared_head.head.weight");
  EXPECT_EQ(mapped->copies[1].original, "lm_head.weight");
  EXPECT_TRUE(mapped->copies[1].emitted_by_default);
}

}  // namespace
}  // namespace shardwright
