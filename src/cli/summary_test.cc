// SPDX-License-Identifier: Apache-2.0
#include "cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

using ::testing::ElementsAre;

StoredTensor tensor(std::string name, DType dtype, const Dims& shape, std::uint32_t file) {
  StoredTensor stored{{std::move(name), dtype, shape}, ChunkList(shape.size()), Encoding::kRaw};
  stored.chunks.push_back({Box::whole(shape), file, {0, 1}, {}});
  return stored;
}

Catalog example() {
  Catalog catalog;
  catalog.files = {"a", "b", "tokenizer.json"};
  catalog.tensors.push_back(tensor("layers.10.w", DType::kBF16, {2, 3}, 0));
  catalog.tensors.push_back(tensor("layers.2.w", DType::kF32, {4}, 1));
  catalog.tensors.push_back(tensor("optimizer.state.exp_avg.x", DType::kF32, {}, 1));
  catalog.objects.push_back({"rng", 1, {0, 5}});
  return catalog;
}

TEST(Summarize, CountsWhatIsThere) {
  const CatalogSummary summary = summarize(example());
  EXPECT_EQ(summary.tensors, 3u);
  EXPECT_EQ(summary.optimizer_tensors, 1u);
  Catalog of_a_trainer = example();
  of_a_trainer.tensors.push_back(tensor("app.optim.state.x.exp_avg", DType::kF32, {}, 1));
  EXPECT_EQ(summarize(of_a_trainer).optimizer_tensors, 2u);
  EXPECT_EQ(summary.elements, 11u);
  EXPECT_EQ(summary.bytes, 32u);
  EXPECT_EQ(summary.chunks, 3u);
  EXPECT_EQ(summary.chunk_bytes, 32u);
  EXPECT_EQ(summary.objects, 1u);
  EXPECT_EQ(summary.files, 2u);
  EXPECT_EQ(summary.dtypes.at(DType::kF32).tensors, 2u);
  EXPECT_EQ(summary.dtypes.at(DType::kF32).bytes, 20u);
  EXPECT_EQ(summarize({}).tensors, 0u);

  Catalog part = example();
  part.tensors[0].chunks = ChunkList(2);
  part.tensors[0].chunks.push_back({{{1, 0}, {1, 3}}, 0, {0, 6}, {}});
  EXPECT_EQ(summarize(part).bytes, 32u);
  EXPECT_EQ(summarize(part).chunk_bytes, 26u);
}

TEST(MatchingTensors, FiltersAndCounts) {
  const Catalog catalog = example();
  EXPECT_THAT(matching_tensors(catalog, {}), ElementsAre(1, 0, 2));
  EXPECT_THAT(matching_tensors(catalog, {"layers.*"}), ElementsAre(1, 0));
  EXPECT_THAT(matching_tensors(catalog, {"*.10.*", "opt*"}), ElementsAre(0, 2));
  EXPECT_THAT(matching_tensors(catalog, {"nothing"}), ElementsAre());
}

TEST(Replicas, AreTheMostThatOneBoxHas) {
  const auto stored = [](const std::vector<std::int64_t>& origins) {
    StoredTensor tensor{{"w", DType::kF32, {8}}, ChunkList(1), Encoding::kRaw};
    for (std::int64_t origin : origins) tensor.chunks.push_back({{{origin}, {2}}, 0, {0, 8}, {}});
    return tensor;
  };
  EXPECT_EQ(replicas_of(stored({})), 0u);
  EXPECT_EQ(replicas_of(stored({0, 2, 4, 6})), 1u);
  EXPECT_EQ(replicas_of(stored({6, 4, 2, 0})), 1u);
  EXPECT_EQ(replicas_of(stored({0, 2, 2, 4})), 2u);
  EXPECT_EQ(replicas_of(stored({0, 2, 0, 2, 0})), 3u);
  StoredTensor beside = stored({0, 2});
  beside.chunks.push_back({{{2}, {4}}, 0, {0, 16}, {}});
  EXPECT_EQ(replicas_of(beside), 1u);
}

TEST(Facts, TellTheLayoutAndTheModel) {
  Checkpoint checkpoint;
  checkpoint.arguments = {{"tensor_model_parallel_size", std::int64_t{2}},
                          {"pipeline_model_parallel_size", std::int64_t{1}},
                          {"virtual_pipeline_model_parallel_size", std::monostate{}},
                          {"num_layers", std::int64_t{4}},
                          {"hidden_size", std::int64_t{64}}};
  EXPECT_EQ(facts_text(layout_facts(checkpoint)), "TP 2");
  EXPECT_EQ(facts_text(model_facts(checkpoint)), "layers 4, hidden 64");

  Checkpoint model;
  model.hf_config = R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2,
                        "num_local_experts": 8, "num_key_value_heads": null})";
  EXPECT_EQ(facts_text(model_facts(model)), "architecture LlamaForCausalLM, layers 2, experts 8");
  model.hf_config = "{";
  EXPECT_EQ(model_facts(model).at(0).first, "config.json");
  EXPECT_EQ(facts_text(model_facts({})), "");
}

TEST(LayoutText, LeavesOutWhatIsUsual) {
  EXPECT_EQ(layout_text({}), "one rank");
  EXPECT_EQ(layout_text({}, 3), "3 ranks");
  EXPECT_EQ(layout_text({2, 4, 1, 8, 2}), "TP 2, PP 4, EP 8");
  EXPECT_EQ(layout_text({2, 1, 3, 1, 1}), "TP 2, VPP 3, ETP 1");
}

}  // namespace
}  // namespace shardwright::cli
