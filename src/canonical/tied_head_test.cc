// SPDX-License-Identifier: Apache-2.0
#include "canonical/tied_head.h"

#include <gtest/gtest.h>

namespace shardwright::tied_head {
namespace {

TEST(TiedHead, IsWhatConfigAndNamesSay) {
  const std::vector<TensorDesc> bare = {{"model.embed_tokens.weight", DType::kBF16, {30, 8}}};
  std::vector<TensorDesc> whole = bare;
  whole.push_back({"lm_head.weight", DType::kBF16, {30, 8}});
  const auto tied = [](const char* config, const std::vector<TensorDesc>& model) {
    return find_tied_head(config, model).value();
  };
  EXPECT_EQ(tied(R"({"tie_word_embeddings": true})", bare)->head, "lm_head.weight");
  EXPECT_TRUE(tied(R"({"tie_word_embeddings": true})", whole)->is_stored);
  EXPECT_TRUE(tied(R"({"text_config": {"tie_word_embeddings": true}})", bare));
  EXPECT_TRUE(tied(R"({"architectures": ["LlamaForCausalLM"]})", bare));
  EXPECT_FALSE(tied(R"({"architectures": ["LlamaForCausalLM"]})", whole));
  EXPECT_FALSE(tied(R"({"architectures": ["LlamaModel"]})", bare));
  EXPECT_FALSE(
      tied(R"({"tie_word_embeddings": false, "architectures": ["LlamaForCausalLM"]})", bare));
  EXPECT_EQ(find_tied_head("{", bare).error().code, Code::kJsonCorrupt);
}

TEST(MissingHead, HasTheNameThatGoesWithTheEmbeddings) {
  const auto head_of = [](const char* embedding) {
    const std::vector<TensorDesc> model = {{embedding, DType::kBF16, {30, 8}},
                                           {"norm.weight", DType::kBF16, {8}}};
    const auto head = missing_head(model);
    return head && head->embedding == embedding ? head->head : "none";
  };
  EXPECT_EQ(head_of("embed_tokens.weight"), "lm_head.weight");
  EXPECT_EQ(head_of("gpt_neox.embed_in.weight"), "embed_out.weight");
  EXPECT_EQ(head_of("embed.weight"), "head.weight");
  EXPECT_EQ(head_of("patch_embed.weight"), "none");
  const std::vector<TensorDesc> whole = {{"embed.weight", DType::kBF16, {30, 8}},
                                         {"head.weight", DType::kBF16, {30, 8}}};
  EXPECT_FALSE(missing_head(whole));
}

TEST(UntiedConfig, SaysThatThereAreTwo) {
  EXPECT_EQ(untied_config(R"({"b": 1, "tie_word_embeddings": true,
                              "text_config": {"tie_word_embeddings": true}})")
                .value(),
            "{\n  \"b\": 1,\n  \"tie_word_embeddings\": false,\n  \"text_config\": {\n    "
            "\"tie_word_embeddings\": false\n  }\n}\n");
}

}  // namespace
}  // namespace shardwright::tied_head
