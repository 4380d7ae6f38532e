// SPDX-License-Identifier: Apache-2.0
// Files that are laid out for the job that will load them. The expectations are what ranks of a
// real Megatron-Core were seen to read, which does not depend on files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "convert/golden.h"
#include "dcp/replica_name.h"
#include "layout/rank_order.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

const std::string kDense = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
const std::string kMoe = "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full";

ConvertRequest for_job(const std::string& input, const ParallelConfig& parallel,
                       std::int64_t data) {
  ConvertRequest request;
  request.input = input;
  request.output = "no/such/place";
  request.parallel = parallel;
  request.data_ranks = data;
  return request;
}

ConvertRequest without_optimizer(ConvertRequest request) {
  request.optimizer = OptimizerPolicy::kDrop;
  return request;
}

// Whose files have the pieces of each tensor, in the order of their places.
std::map<std::string, std::string> files_of_tensors(const Catalog& catalog) {
  std::map<std::string, std::string> files;
  for (const StoredTensor& tensor : catalog.tensors) {
    std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>> pieces;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Dims origin = tensor.chunks.box(i).origin;
      pieces.emplace_back(std::vector(origin.begin(), origin.end()),
                          rank_of_file(catalog.files[tensor.chunks.file(i)]).value());
    }
    std::ranges::sort(pieces);
    for (const auto& [origin, rank] : pieces) files[tensor.desc.name] += std::to_string(rank);
  }
  return files;
}

std::map<std::string, std::string> planned(const ConvertRequest& request) {
  const auto prepared = prepare_conversion(request);
  EXPECT_TRUE(prepared) << prepared.error().text();
  return prepared ? files_of_tensors(prepared->plan.target) : std::map<std::string, std::string>();
}

// TP 2, DP 2, with the distributed optimizer's states.
TEST(OwnFiles, HoldWhatRanksOfADenseJobRead) {
  std::map<std::string, std::string> expected = {
      {"decoder.final_layernorm.weight", "2"},
      {"embedding.word_embeddings.weight", "01"},
      {"output_layer.weight", "23"},
      {"optimizer.state.exp_avg.decoder.final_layernorm.weight", "0"},
      {"optimizer.state.exp_avg_sq.decoder.final_layernorm.weight", "2"},
      {"optimizer.state.param.decoder.final_layernorm.weight", "0"},
  };
  for (const std::string kind : {"", "exp_avg.", "exp_avg_sq.", "param."}) {
    const std::string prefix = kind.empty() ? kind : "optimizer.state." + kind;
    const std::string layers = prefix + "decoder.layers.";
    const std::string norms = kind == "exp_avg_sq." ? "0202" : "2020";
    expected[layers + "mlp.linear_fc1.layer_norm_weight"] = norms;
    expected[layers + "self_attention.linear_qkv.layer_norm_weight"] = norms;
    expected[layers + "mlp.linear_fc1.weight"] = "0123012301230123";
    for (const char* name : {"mlp.linear_fc2.weight", "self_attention.linear_proj.weight",
                             "self_attention.linear_qkv.weight"}) {
      expected[layers + name] = "01230123";
    }
    expected[prefix + "embedding.word_embeddings.weight"] = "01";
    expected[prefix + "output_layer.weight"] = "23";
  }
  EXPECT_EQ(planned(for_job(golden_path(kDense), {2, 1, 1, 1, 2}, 2)), expected);
}

// TP 2, EP 2, ETP 2, DP 2: each expert is on one rank.
TEST(OwnFiles, HoldWhatRanksOfAJobWithExpertsRead) {
  ConvertRequest request = for_job(golden_path(kMoe), {2, 1, 1, 2, 2}, 2);
  request.spec = ModuleSpec::kLocal;
  const std::string experts = "decoder.layers.mlp.experts.experts.linear_";
  std::string fc1, fc2;
  for (int layer = 0; layer < 4; ++layer) {
    fc1 += "01010101010101012323232323232323";
    fc2 += "0101010123232323";
  }
  EXPECT_EQ(planned(without_optimizer(request)),
            (std::map<std::string, std::string>{
                {"decoder.final_layernorm.weight", "0"},
                {experts + "fc1.weight", fc1},
                {experts + "fc2.weight", fc2},
                {"decoder.layers.mlp.linear_fc1.layer_norm_weight", "2020"},
                {"decoder.layers.mlp.router.expert_bias", "2222"},
                {"decoder.layers.mlp.router.weight", "0202"},
                {"decoder.layers.mlp.shared_experts.linear_fc1.weight", "0123012301230123"},
                {"decoder.layers.mlp.shared_experts.linear_fc2.weight", "01230123"},
                {"decoder.layers.self_attention.linear_proj.weight", "01230123"},
                {"decoder.layers.self_attention.linear_qkv.layer_norm_weight", "2020"},
                {"decoder.layers.self_attention.linear_qkv.weight", "01230123"},
                {"embedding.word_embeddings.weight", "01"},
                {"output_layer.weight", "23"},
            }));
}

// TP 2, DP 2: position embeddings, which every tensor rank holds, outweigh most of what is cut.
TEST(OwnFiles, HoldWhatRanksOfAModelWithBiasesRead) {
  const std::string gpt2 = "mcore/gpt2_te/v0.20.0dev/tp1pp2-torch_dist-full";
  EXPECT_EQ(planned(without_optimizer(for_job(golden_path(gpt2), {2, 1, 1, 1, 2}, 2))),
            (std::map<std::string, std::string>{
                {"decoder.final_layernorm.bias", "2"},
                {"decoder.final_layernorm.weight", "2"},
                {"decoder.layers.mlp.linear_fc1.bias", "21212321"},
                {"decoder.layers.mlp.linear_fc1.layer_norm_bias", "2222"},
                {"decoder.layers.mlp.linear_fc1.layer_norm_weight", "2222"},
                {"decoder.layers.mlp.linear_fc1.weight", "23012301"},
                {"decoder.layers.mlp.linear_fc2.bias", "2222"},
                {"decoder.layers.mlp.linear_fc2.weight", "23012301"},
                {"decoder.layers.self_attention.linear_proj.bias", "2222"},
                {"decoder.layers.self_attention.linear_proj.weight", "23230123"},
                {"decoder.layers.self_attention.linear_qkv.bias", "21212123"},
                {"decoder.layers.self_attention.linear_qkv.layer_norm_bias", "0202"},
                {"decoder.layers.self_attention.linear_qkv.layer_norm_weight", "0202"},
                {"decoder.layers.self_attention.linear_qkv.weight", "23232301"},
                {"embedding.position_embeddings.weight", "0"},
                {"embedding.word_embeddings.weight", "01"},
            }));
}

// Copies lie with their tensor ranks, and are shared out there.
TEST(OwnFiles, HoldTheCopiesOfTheirOwnRanks) {
  ConvertRequest request = for_job(golden_path(kMoe), {2, 2, 1, 2, 1}, 2);
  request.tp_replicas = TpReplicas::kExpand;
  std::size_t copies = 0;
  for (const auto& [name, ranks] : planned(request)) {
    const auto replica = parse_replica_name(name);
    if (!replica) continue;
    ++copies;
    for (const char rank : ranks) EXPECT_EQ((rank - '0') % 2, *replica->replica) << name << ranks;
    EXPECT_EQ(name.find(".experts."), std::string::npos) << name;
  }
  EXPECT_EQ(copies, 2 * (5U + 4 * 3));
}

// Without data parallelism there is nothing to share out.
TEST(OwnFiles, OfOneDataParallelRankAreThoseWithoutAJob) {
  ConvertRequest alone = for_job(golden_path(kDense), {2, 2, 1, 1, 2}, 1);
  const auto expected = planned(alone);
  alone.data_ranks.reset();
  EXPECT_EQ(planned(alone), expected);
}

TEST(OwnFiles, SurviveBothWays) {
  const TemporaryFolder out;
  ConvertRequest request = for_job(golden_path(kMoe), {2, 2, 1, 2, 1}, 4);
  request.output = out / "x";
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(
      difference(read_all_tensors(out / "x").value(), read_all_tensors(golden_path(kMoe)).value()),
      "");
}

// Extra states lie where their first holder finds them; what no rank of the job reads, at the
// front.
TEST(OwnFiles, HoldObjectsToo) {
  const auto prepared =
      prepare_conversion(without_optimizer(for_job(golden_path(kMoe), {2, 2, 1, 2, 1}, 2)));
  ASSERT_TRUE(prepared) << prepared.error().text();
  const Catalog& target = prepared->plan.target;
  std::map<std::string, std::int64_t> ranks;
  for (const StoredObject& object : target.objects) {
    ranks[object.name] = rank_of_file(target.files[object.file]).value();
  }
  const std::string layers = "decoder.layers.";
  EXPECT_EQ(ranks.at(layers + "self_attention.linear_qkv._extra_state/shard_1_4"), 0);
  EXPECT_EQ(ranks.at(layers + "self_attention.linear_qkv._extra_state/shard_2_4"), 4);
  EXPECT_EQ(ranks.at(layers + "mlp.experts.experts.linear_fc1._extra_state/shard_1.4_4.8"), 1);
  EXPECT_EQ(ranks.at(layers + "mlp.experts.experts.linear_fc1._extra_state/shard_3.7_4.8"), 5);
}

// A second embedding that only Hugging Face stores changes no rank's share.
TEST(OwnFiles, AreNotMovedByWhatNoRankReads) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/deepseek_v3_mtp/hf"), place / "in",
                        std::filesystem::copy_options::recursive);
  const ConvertRequest request = for_job(place / "in", {2, 1, 1, 2, 1}, 2);
  const auto expected = planned(request);
  const Catalog catalog = open_checkpoint(place / "in").value().catalog;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.desc.name != "model.layers.3.embed_tokens.weight") continue;
    alter_sealed(place / "in/model.safetensors", tensor.chunks.range(0), 6, '\x55');
  }
  auto files = planned(request);
  EXPECT_EQ(files.size(), expected.size() + 1);
  EXPECT_EQ(std::erase_if(files,
                          [](const auto& file) {
                            return file.first.starts_with("hf_extra.") && file.second == "0";
                          }),
            1U);
  EXPECT_EQ(files, expected);
}

TEST(OwnFiles, NeedSizesThatFit) {
  const auto refused = prepare_conversion(for_job(golden_path(kMoe), {1, 1, 1, 4, 1}, 2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotDivisible);
  EXPECT_THAT(refused.error().message, HasSubstr("--dp 2"));
}

TEST(OwnFiles, AreExplained) {
  const auto prepared = prepare_conversion(for_job(golden_path(kDense), {2, 1, 1, 1, 2}, 2));
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes, testing::Contains(HasSubstr("laid out for 4 ranks")));
}

}  // namespace
}  // namespace shardwright
