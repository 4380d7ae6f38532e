// SPDX-License-Identifier: Apache-2.0
#include "canonical/quantise_drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shardwright {
namespace {

using testing::HasSubstr;

constexpr const char* kName = "model.layers.0.mlp.down_proj.weight";
constexpr const char* kOther = "model.layers.1.mlp.down_proj.weight";

std::string config_with(const std::string& more) {
  return R"({"model_type": "deepseek_v3", "quantization_config": {"quant_method": "fp8",)"
         R"( "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128])" +
         more + "}}";
}

QuantiseChoice choice_of(const std::string& config, const ReleasedQuantisation& released = {}) {
  return choose_quantisation(Quantising::Scheme::kFp8, false, config, released).value();
}

TensorDesc matrix(const std::string& name) { return {name, DType::kBF16, {256, 256}}; }

DraftTensor draft_of(const std::string& name) {
  const TensorView whole{Box::whole({256, 256}), 0, {0, 0}, {0, 1}, {1, 1}};
  return {matrix(name), {{whole}, std::nullopt, 0.0}, std::nullopt};
}

TEST(QuantiseDrafts, LeavesWhatTheConfigLeaves) {
  const QuantiseChoice choice = choice_of(
      config_with(R"(, "modules_to_not_convert": ["model.layers.1.mlp.down_proj", "lm_head"])"));
  EXPECT_TRUE(choice.takes(matrix(kName)));
  EXPECT_FALSE(choice.takes(matrix(kOther)));
}

TEST(QuantiseDrafts, TakesWhatTheReleaseHadAndNothingElse) {
  ReleasedQuantisation released;
  released.config = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
  released.tensors = {kOther};
  const QuantiseChoice choice = choice_of(R"({"model_type": "deepseek_v3"})", released);
  EXPECT_FALSE(choice.takes(matrix(kName)));
  EXPECT_TRUE(choice.takes(matrix(kOther)));
}

TEST(QuantiseDrafts, NamesScalesAsTheFamilyDoes) {
  EXPECT_EQ(choice_of(R"({"model_type": "deepseek_v3"})").name_of_scales("a.weight"),
            "a.weight_scale_inv");
  EXPECT_EQ(choice_of(R"({"model_type": "deepseek_v4"})").name_of_scales("a.weight"), "a.scale");
}

TEST(QuantiseDrafts, RefusesTablesOfBlocksWithinRows) {
  const auto choice =
      choose_quantisation(Quantising::Scheme::kFp8, false, R"({"model_type": "deepseek_v41"})", {});
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(choice.error().message, HasSubstr("deepseek_v41"));
}

// transformers makes modules of fp8 of what is nn.Linear, and reads its own list as expressions.
TEST(QuantiseDrafts, TakesNoMoreThanIsLoadedAsFp8) {
  for (const char* type : {"gpt2", "gpt_oss", "llama4_text", "falcon", "granitemoe", "zamba2"}) {
    const auto choice = choose_quantisation(Quantising::Scheme::kFp8, false,
                                            fmt::format(R"({{"model_type": "{}"}})", type), {});
    ASSERT_FALSE(choice) << type;
    EXPECT_EQ(choice.error().code, Code::kUnsupportedFormat);
    EXPECT_THAT(choice.error().message, HasSubstr("not loaded from blocks of fp8"));
  }
  const QuantiseChoice choice = choice_of(R"({"model_type": "mixtral"})");
  EXPECT_TRUE(choice.takes(matrix(kName)));
  for (const char* left :
       {"model.layers.0.block_sparse_moe.router.layer.weight", "model.layers.0.router.proj.weight",
        "model.layers.0.mlp.gate.wg.weight",
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}) {
    EXPECT_FALSE(choice.takes(matrix(left))) << left;
  }
  const auto expression = choose_quantisation(
      Quantising::Scheme::kFp8, false,
      config_with(R"(, "modules_to_not_convert": ["model.layers.[0-9]+.mlp"])"), {});
  ASSERT_FALSE(expression);
  EXPECT_THAT(expression.error().message, HasSubstr("a regular expression"));
}

TEST(QuantiseDrafts, OfDeepseekV4HasScalesThatAreRead) {
  const QuantiseChoice choice = choice_of(R"({"model_type": "deepseek_v4"})");
  EXPECT_TRUE(choice.form.has_exponents);
  EXPECT_THAT(choice.config, HasSubstr("ue8m0"));
}

TEST(QuantiseDrafts, AddsWhatIsLeftToAListOfItsOwn) {
  QuantiseChoice choice = choice_of(config_with(R"(, "modules_to_not_convert": ["lm_head"])"));
  std::vector<DraftTensor> drafts{draft_of(kName), draft_of("model.layers.0.mlp.gate.weight")};
  Notes notes;
  ASSERT_TRUE(quantise_drafts(choice, drafts, notes));
  EXPECT_THAT(choice.config,
              HasSubstr(R"("modules_to_not_convert":["lm_head","model.layers.0.mlp.gate"])"));
}

TEST(QuantiseDrafts, ListsWhatIsLeft) {
  QuantiseChoice choice = choice_of(R"({"model_type": "deepseek_v3"})");
  std::vector<DraftTensor> drafts{draft_of(kName), draft_of("model.embed_tokens.weight")};
  Notes notes;
  ASSERT_TRUE(quantise_drafts(choice, drafts, notes));
  ASSERT_EQ(drafts.size(), 3U);
  EXPECT_EQ(drafts[1].desc.name, std::string(kName) + "_scale_inv");
  EXPECT_THAT(choice.config,
              HasSubstr(R"("modules_to_not_convert":["model.embed_tokens","lm_head"])"));
}

TEST(QuantiseDrafts, RefusesANameThatScalesWouldHave) {
  QuantiseChoice choice = choice_of(R"({"model_type": "deepseek_v3"})");
  std::vector<DraftTensor> drafts{draft_of(kName), draft_of(std::string(kName) + "_scale_inv")};
  Notes notes;
  const Status status = quantise_drafts(choice, drafts, notes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDuplicateName);
}

// A stored pair of values and scales of such blocks.
struct StoredPair {
  Catalog catalog;
  ModelTensors model;

  StoredPair(const Dims& block, const Dims& scales) {
    catalog.files = {"model.safetensors"};
    add({kName, DType::kF8E4M3, {256, 256}});
    add({std::string(kName) + "_scale_inv", DType::kF32, scales});
    QuantisedTensor joined;
    joined.values = 0;
    joined.scales = 1;
    joined.block = block;
    joined.desc = matrix(kName);
    model.tensors = {joined.desc};
    model.quantised = {joined};
  }

  void add(const TensorDesc& desc) {
    StoredTensor tensor{desc, ChunkList(desc.shape.size())};
    const Box whole = Box::whole(desc.shape);
    const auto bytes = static_cast<std::uint64_t>(whole.volume()) *
                       static_cast<std::uint64_t>(bytes_of(desc.dtype));
    tensor.chunks.push_back({whole, 0, {0, bytes}, {}});
    catalog.tensors.push_back(std::move(tensor));
  }
};

TEST(KeepQuantised, MakesScalesAnewThatAreToBePowersOfTwo) {
  const auto choice_with_exponents = [](const std::string& config) {
    const StoredPair stored({128, 128}, {2, 2});
    const ReleasedQuantisation own = released_quantisation(stored.model, config).value();
    return choose_quantisation(Quantising::Scheme::kFp8, true, config, own).value();
  };
  StoredPair any({128, 128}, {2, 2});
  const QuantiseChoice fresh = choice_with_exponents(config_with(""));
  EXPECT_THAT(fresh.config, HasSubstr(R"("scale_fmt":"ue8m0")"));
  EXPECT_TRUE(keep_quantised(fresh, any.catalog, {}, any.model).empty());
  EXPECT_EQ(any.model.quantised.size(), 1U);
  StoredPair powers({128, 128}, {2, 2});
  const std::string stated = config_with(R"(, "scale_fmt": "ue8m0")");
  EXPECT_EQ(keep_quantised(choice_with_exponents(stated), powers.catalog, {}, powers.model).size(),
            2U);
}

TEST(KeepQuantised, KeepsBlocksOfTheSizeThatIsWantedOnly) {
  const QuantiseChoice choice = choice_of(config_with(""));
  StoredPair same({128, 128}, {2, 2});
  auto changed = same;
  EXPECT_TRUE(
      keep_quantised(choice, changed.catalog, {changed.model.quantised[0].desc.name}, changed.model)
          .empty());
  EXPECT_EQ(keep_quantised(choice, same.catalog, {}, same.model).size(), 2U);
  EXPECT_TRUE(same.model.quantised.empty());
  EXPECT_EQ(same.model.tensors.size(), 2U);
  for (auto [block, scales] : {std::pair{Dims{64, 128}, Dims{4, 2}}, {{128, 64}, {2, 4}}}) {
    StoredPair other(block, scales);
    EXPECT_TRUE(keep_quantised(choice, other.catalog, {}, other.model).empty());
    EXPECT_EQ(other.model.quantised.size(), 1U);
  }
}

}  // namespace
}  // namespace shardwright
