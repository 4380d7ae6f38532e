// SPDX-License-Identifier: Apache-2.0
#include "model/argument_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/apply.h"
#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_of_arguments(const std::vector<Contradiction>& found) {
  std::vector<std::string> names;
  for (const Contradiction& each : found) names.push_back(each.argument);
  return names;
}

std::vector<std::string> messages_of(const std::vector<Contradiction>& found) {
  std::vector<std::string> messages;
  for (const Contradiction& each : found) messages.push_back(each.message);
  return messages;
}

std::vector<TensorDesc> canonical_of(const std::string& family, const ModelSizes& sizes,
                                     std::span<const TensorDesc> hf) {
  const auto mapped = map_from_hf(shipped(family), sizes, hf);
  if (!mapped) throw std::runtime_error(mapped.error().message);
  std::vector<TensorDesc> canonical;
  for (const MappedTensor& tensor : mapped->megatron) canonical.push_back(tensor.desc);
  return canonical;
}

// A run's arguments and the tensors that it saved.
struct SavedRun {
  Arguments args;
  std::vector<TensorDesc> tensors;

  [[nodiscard]] std::vector<std::string> with(const std::string& name,
                                              const ArgValue& value) const {
    Arguments changed = args;
    changed.insert_or_assign(name, value);
    return names_of_arguments(contradicted_arguments(changed, tensors));
  }
  [[nodiscard]] std::vector<std::string> without(const std::string& tensor) const {
    std::vector<TensorDesc> left = tensors;
    std::erase_if(left, [&](const TensorDesc& each) { return each.name == tensor; });
    return names_of_arguments(contradicted_arguments(args, left));
  }
  [[nodiscard]] std::vector<std::string> with_tensor(const std::string& name,
                                                     const Dims& shape) const {
    std::vector<TensorDesc> more = tensors;
    more.push_back({name, DType::kBF16, shape});
    return names_of_arguments(contradicted_arguments(args, more));
  }
};

ArgValue whole(std::int64_t number) { return ArgValue{number}; }
ArgValue text(const char* value) { return ArgValue{std::string(value)}; }

SavedRun dense_run() {
  SampleModel model;
  model.heads = 4;
  model.groups = 2;
  model.hidden = 8;
  model.vocab = 24;
  SavedRun run;
  run.tensors = canonical_of("llama", model.sizes(), model.llama(false, false));
  run.args = {{"num_layers", whole(2)},
              {"hidden_size", whole(8)},
              {"ffn_hidden_size", whole(5)},
              {"num_attention_heads", whole(4)},
              {"group_query_attention", true},
              {"num_query_groups", whole(2)},
              {"kv_channels", whole(2)},
              {"swiglu", true},
              {"qk_layernorm", false},
              {"multi_latent_attention", false},
              {"q_lora_rank", ArgValue{}},
              {"kv_lora_rank", whole(32)},
              {"num_experts", ArgValue{}},
              {"moe_ffn_hidden_size", ArgValue{}},
              {"moe_shared_expert_intermediate_size", ArgValue{}},
              {"moe_layer_freq", whole(1)},
              {"padded_vocab_size", whole(24)},
              {"vocab_size", whole(23)},
              {"make_vocab_size_divisible_by", whole(8)},
              {"untie_embeddings_and_output_weights", true},
              {"add_bias_linear", false},
              {"add_qkv_bias", false},
              {"normalization", text("RMSNorm")},
              {"position_embedding_type", text("rope")},
              {"max_position_embeddings", whole(32)},
              {"mtp_num_layers", ArgValue{}}};
  return run;
}

SavedRun expert_run() {
  SampleModel model;
  model.layers = 3;
  SavedRun run;
  ModelSizes sizes = model.sizes();
  run.tensors = canonical_of("qwen3_moe", sizes, model.qwen3_moe(false, 1));
  run.args = {{"num_layers", whole(3)},
              {"num_experts", whole(3)},
              {"moe_ffn_hidden_size", whole(2)},
              {"ffn_hidden_size", whole(5)},
              {"moe_shared_expert_intermediate_size", ArgValue{}},
              {"moe_layer_freq", ArgValue{std::vector<std::int64_t>{0, 1, 1}}},
              {"gated_linear_unit", true},
              {"qk_layernorm", true}};
  return run;
}

SavedRun latent_run(std::int64_t q_rank) {
  const SampleModel model;
  SavedRun run;
  run.tensors =
      canonical_of("deepseek_v2", model.deepseek_sizes(q_rank), model.deepseek_v2(q_rank));
  run.args = {{"multi_latent_attention", true},
              {"qk_layernorm", true},
              {"num_attention_heads", whole(3)},
              {"q_lora_rank", q_rank == 0 ? ArgValue{} : whole(q_rank)},
              {"kv_lora_rank", whole(3)},
              {"qk_head_dim", whole(2)},
              {"qk_pos_emb_head_dim", whole(1)},
              {"v_head_dim", whole(3)},
              {"moe_shared_expert_intermediate_size", whole(4)}};
  return run;
}

TEST(ArgumentCheck, OfTrueArgumentsFindsNothing) {
  for (const SavedRun& run : {dense_run(), expert_run(), latent_run(4), latent_run(0)}) {
    EXPECT_THAT(messages_of(contradicted_arguments(run.args, run.tensors)), IsEmpty());
  }
}

TEST(ArgumentCheck, FindsNothingInWhatTheOriginalSoftwareImported) {
  ASSERT_FALSE(golden_folders().empty());
  for (const std::string& folder : golden_folders()) {
    const GoldenFamily golden = load_golden(folder);
    const auto made = args_from_hf_config(*golden.mapping, golden.config, golden.hf);
    ASSERT_TRUE(made) << folder;
    Arguments args(made->values.begin(), made->values.end());
    EXPECT_THAT(messages_of(contradicted_arguments(args, golden.canonical)), IsEmpty()) << folder;
    // The check is no empty one: another width is found in each of them.
    args.insert_or_assign("hidden_size", whole(7));
    EXPECT_THAT(names_of_arguments(contradicted_arguments(args, golden.canonical)),
                Contains("hidden_size"))
        << folder;
  }
}

// In any layer: the first one's may be right.
TEST(ArgumentCheck, FindsANormThatIsNotOfTheModelsWidth) {
  SavedRun run = dense_run();
  const auto norm =
      std::ranges::find(run.tensors, "decoder.layers.1.self_attention.linear_qkv.layer_norm_weight",
                        &TensorDesc::name);
  ASSERT_NE(norm, run.tensors.end());
  --norm->shape[0];
  const std::vector<Contradiction> found = contradicted_arguments(run.args, run.tensors);
  EXPECT_THAT(names_of_arguments(found), ElementsAre("hidden_size"));
  EXPECT_THAT(messages_of(found), ElementsAre(HasSubstr(norm->name)));
}

TEST(ArgumentCheck, FindsEachSizeOfADenseModel) {
  const SavedRun run = dense_run();
  for (const auto& [name, value] :
       {std::pair("num_layers", 1), std::pair("num_layers", 3), std::pair("hidden_size", 16),
        std::pair("ffn_hidden_size", 6), std::pair("num_attention_heads", 8),
        std::pair("num_query_groups", 4), std::pair("num_query_groups", 1),
        std::pair("num_query_groups", 3), std::pair("num_query_groups", 0),
        std::pair("num_experts", 8), std::pair("padded_vocab_size", 32),
        std::pair("vocab_size", 25), std::pair("mtp_num_layers", 1)}) {
    EXPECT_THAT(run.with(name, whole(value)), ElementsAre(name)) << value;
  }
  for (const std::int64_t absurd : {std::int64_t{-3}, std::int64_t{1} << 60}) {
    EXPECT_THAT(run.with("num_layers", whole(absurd)), Contains("num_layers")) << absurd;
  }
  EXPECT_THAT(run.with("kv_channels", whole(3)), ElementsAre("kv_channels"));
}

TEST(ArgumentCheck, FindsEachSwitchOfADenseModel) {
  const SavedRun run = dense_run();
  EXPECT_THAT(run.with("swiglu", false), ElementsAre("swiglu"));
  EXPECT_THAT(run.with("qk_layernorm", true), ElementsAre("qk_layernorm"));
  EXPECT_THAT(run.with("multi_latent_attention", true), ElementsAre("multi_latent_attention"));
  EXPECT_THAT(run.with("group_query_attention", false), ElementsAre("group_query_attention"));
  EXPECT_THAT(run.with("attention_output_gate", true), ElementsAre("attention_output_gate"));
  EXPECT_THAT(run.with("add_qkv_bias", true), ElementsAre("add_qkv_bias"));
  EXPECT_THAT(run.with("add_bias_linear", true), Contains("add_bias_linear"));
  EXPECT_THAT(run.with("normalization", text("LayerNorm")), ElementsAre("normalization"));
  EXPECT_THAT(run.with("position_embedding_type", text("learned_absolute")),
              ElementsAre("position_embedding_type"));
  EXPECT_THAT(run.with("untie_embeddings_and_output_weights", false),
              ElementsAre("untie_embeddings_and_output_weights"));
  EXPECT_THAT(run.without("output_layer.weight"),
              ElementsAre("untie_embeddings_and_output_weights"));
}

TEST(ArgumentCheck, FindsTensorsThatNoArgumentAsksFor) {
  const SavedRun run = dense_run();
  EXPECT_THAT(run.with_tensor("decoder.final_layernorm.bias", {8}), ElementsAre("normalization"));
  EXPECT_THAT(run.with_tensor("decoder.layers.1.self_attention.linear_qkv.bias", {16}),
              ElementsAre("add_qkv_bias"));
  EXPECT_THAT(run.with_tensor("decoder.layers.1.mlp.linear_fc1.bias", {10}),
              ElementsAre("add_bias_linear"));
  EXPECT_THAT(run.with_tensor("decoder.layers.0.self_attention.q_layernorm.weight", {2}),
              ElementsAre("qk_layernorm"));
  EXPECT_THAT(run.with_tensor("embedding.position_embeddings.weight", {32, 8}),
              ElementsAre("position_embedding_type"));
  EXPECT_THAT(run.with_tensor("mtp.layers.0.eh_proj.weight", {8, 16}),
              ElementsAre("mtp_num_layers"));
  EXPECT_THAT(run.with_tensor("decoder.layers.2.mlp.linear_fc2.weight", {8, 5}),
              ElementsAre("num_layers"));
}

// A model cut down to its first layers.
TEST(ArgumentCheck, NeedsNoRouterWhereNoLayerHasExperts) {
  SavedRun run = dense_run();
  EXPECT_THAT(run.with("num_experts", whole(4)), ElementsAre("num_experts"));
  run.args["moe_layer_freq"] = ArgValue{std::vector<std::int64_t>{0, 0}};
  EXPECT_THAT(run.with("num_experts", whole(4)), IsEmpty());
  run.args["moe_layer_freq"] = ArgValue{std::vector<std::int64_t>{0, 1}};
  EXPECT_THAT(run.with("num_experts", whole(4)), Contains("num_experts"));
  run.args.erase("moe_layer_freq");
  run.args["expert_layer_period"] = whole(4);
  run.args["expert_layer_offset"] = whole(1);
  EXPECT_THAT(run.with("num_experts", whole(4)), ElementsAre("num_experts"));
  run.args["expert_layer_offset"] = whole(2);  // of the layers 0 and 1
  EXPECT_THAT(run.with("num_experts", whole(4)), IsEmpty());
}

TEST(ArgumentCheck, NeedsNoRouterWhereAHybridsLettersHaveNone) {
  SavedRun run;
  run.tensors = {{"decoder.layers.0.mlp.linear_fc1.weight", DType::kBF16, {6, 8}},
                 {"decoder.layers.0.mlp.linear_fc2.weight", DType::kBF16, {8, 6}}};
  run.args = {{"hybrid_override_pattern", text("-")}};
  EXPECT_THAT(run.with("num_experts", whole(4)), IsEmpty());
  run.args = {{"hybrid_override_pattern", text("E")}};
  EXPECT_THAT(run.with("num_experts", whole(4)), Contains("num_experts"));
}

TEST(ArgumentCheck, FindsEachSizeOfExperts) {
  const SavedRun run = expert_run();
  EXPECT_THAT(run.with("num_experts", whole(4)), ElementsAre("num_experts"));
  EXPECT_THAT(run.with("num_experts", ArgValue{}), ElementsAre("num_experts"));
  EXPECT_THAT(run.with("moe_ffn_hidden_size", whole(3)), ElementsAre("moe_ffn_hidden_size"));
  EXPECT_THAT(run.with("moe_shared_expert_intermediate_size", whole(3)),
              ElementsAre("moe_shared_expert_intermediate_size"));
  EXPECT_THAT(run.with("gated_linear_unit", false), ElementsAre("gated_linear_unit"));
  EXPECT_THAT(run.with("moe_layer_freq", whole(1)), ElementsAre("moe_layer_freq"));
  EXPECT_THAT(run.with("moe_layer_freq", ArgValue{std::vector<std::int64_t>{0, 1}}),
              ElementsAre("moe_layer_freq"));
  EXPECT_THAT(run.with("qk_layernorm", false), ElementsAre("qk_layernorm"));
}

// Each router has one, but for those that choose by a token's number.
TEST(ArgumentCheck, FindsBiasesOfExpertsThatAreNotThere) {
  constexpr const char* kName = "moe_router_enable_expert_bias";
  SavedRun run = expert_run();
  EXPECT_THAT(run.with(kName, true), ElementsAre(kName));
  EXPECT_THAT(run.with(kName, false), IsEmpty());
  std::vector<TensorDesc> biases;
  for (const TensorDesc& desc : run.tensors) {
    if (!desc.name.ends_with("mlp.router.weight")) continue;
    biases.push_back(
        {desc.name.substr(0, desc.name.size() - 6) + "expert_bias", DType::kF32, {desc.shape[0]}});
  }
  ASSERT_EQ(biases.size(), 2U);
  run.tensors.push_back(biases[0]);
  EXPECT_THAT(run.with(kName, true), ElementsAre(kName));
  EXPECT_THAT(run.with(kName, false), ElementsAre(kName));
  TensorDesc by_number = biases[1];
  by_number.name.replace(by_number.name.find("expert_bias"), 11, "tid2eid");
  SavedRun hashed = run;
  hashed.tensors.push_back(by_number);
  EXPECT_THAT(hashed.with(kName, true), IsEmpty());
  biases[1].name.insert(biases[1].name.find("expert_bias"), "text_balance.");
  run.tensors.push_back(biases[1]);
  EXPECT_THAT(run.with(kName, true), IsEmpty());
}

TEST(ArgumentCheck, FindsEachSizeOfLatentAttention) {
  const SavedRun run = latent_run(4);
  for (const char* const name : {"q_lora_rank", "kv_lora_rank", "qk_head_dim", "v_head_dim",
                                 "num_attention_heads", "moe_shared_expert_intermediate_size"}) {
    EXPECT_THAT(run.with(name, whole(9)), Contains(name));
  }
  EXPECT_THAT(run.with("num_attention_heads", whole(9)), ElementsAre("num_attention_heads"));
  EXPECT_THAT(run.with("qk_pos_emb_head_dim", whole(2)), Contains("qk_pos_emb_head_dim"));
  EXPECT_THAT(run.with("q_lora_rank", ArgValue{}), ElementsAre("q_lora_rank"));
  EXPECT_THAT(run.with("multi_latent_attention", false), ElementsAre("multi_latent_attention"));
  EXPECT_THAT(run.with("qk_layernorm", false), ElementsAre("qk_layernorm"));
  EXPECT_THAT(latent_run(0).with("q_lora_rank", whole(4)), ElementsAre("q_lora_rank"));
}

TEST(ArgumentCheck, FindsEachSizeOfWindowsWithHeadsOfTheirOwn) {
  const auto tensor = [](int layer, const std::string& name, const Dims& shape) {
    return TensorDesc{fmt::format("decoder.layers.{}.self_attention.{}", layer, name), DType::kBF16,
                      shape};
  };
  SavedRun run;
  run.tensors = {tensor(0, "linear_qkv.weight", {17, 8}), tensor(0, "linear_proj.weight", {8, 8}),
                 tensor(1, "linear_qkv.weight", {22, 8}), tensor(1, "linear_proj.weight", {8, 8}),
                 tensor(1, "core_attention.softmax_offset", {4})};
  run.args = {{"hidden_size", whole(8)},
              {"num_attention_heads", whole(4)},
              {"group_query_attention", true},
              {"num_query_groups", whole(1)},
              {"swa_num_query_groups", whole(2)},
              {"kv_channels", whole(3)},
              {"v_head_dim", whole(2)}};
  EXPECT_THAT(contradicted_arguments(run.args, run.tensors), IsEmpty());
  EXPECT_THAT(run.with("v_head_dim", whole(3)), ElementsAre("v_head_dim"));
  EXPECT_THAT(run.with("num_query_groups", whole(2)), ElementsAre("num_query_groups"));
  EXPECT_THAT(run.with("swa_num_query_groups", whole(1)), ElementsAre("swa_num_query_groups"));
  EXPECT_THAT(run.with("kv_channels", whole(2)), Contains("num_query_groups"));
}

TEST(ArgumentCheck, ReadsAHybridsPattern) {
  const std::vector<TensorDesc> tensors = {
      {"decoder.layers.0.mixer.A_log", DType::kF32, {4}},
      {"decoder.layers.0.mixer.in_proj.weight.B", DType::kBF16, {6, 8}},
      {"decoder.layers.0.mixer.out_proj.weight", DType::kBF16, {8, 12}},
      {"decoder.layers.1.self_attention.linear_proj.weight", DType::kBF16, {8, 8}},
      {"decoder.layers.2.mlp.linear_fc2.weight", DType::kBF16, {8, 9}}};
  const SavedRun run{{{"hybrid_override_pattern", text("M*-")},
                      {"mamba_num_heads", whole(4)},
                      {"mamba_head_dim", whole(3)},
                      {"mamba_num_groups", whole(2)},
                      {"mamba_state_dim", whole(3)}},
                     tensors};
  EXPECT_THAT(messages_of(contradicted_arguments(run.args, tensors)), IsEmpty());
  EXPECT_THAT(run.with("hybrid_override_pattern", text("M|*-/*E")), IsEmpty());
  EXPECT_THAT(run.with("hybrid_override_pattern", text("M*")),
              ElementsAre("hybrid_override_pattern"));
  EXPECT_THAT(run.with("hybrid_override_pattern", text("*M-")),
              ElementsAre("hybrid_override_pattern"));
  EXPECT_THAT(run.with("mamba_num_heads", whole(6)), ElementsAre("mamba_num_heads"));
  EXPECT_THAT(run.with("mamba_head_dim", whole(4)), ElementsAre("mamba_head_dim"));
  EXPECT_THAT(run.with("mamba_state_dim", whole(4)), ElementsAre("mamba_state_dim"));
}

// Megatron's pretrain_t5.py takes no notice of --decoder-num-layers.
TEST(ArgumentCheck, LetsAnEncoderDecoderHaveAsManyLayersInBoth) {
  SavedRun run = dense_run();
  run.args["decoder_num_layers"] = whole(3);
  EXPECT_THAT(messages_of(contradicted_arguments(run.args, run.tensors)), IsEmpty());
  run.args["num_layers"] = whole(4);
  EXPECT_THAT(run.with("decoder_num_layers", whole(3)), ElementsAre("decoder_num_layers"));
  EXPECT_THAT(run.with("decoder_num_layers", whole(2)), IsEmpty());
}

TEST(ArgumentCheck, LooksIntoLayersThatHyperConnectionsWrap) {
  const SavedRun run{
      {{"hybrid_layer_pattern", text("VE")},
       {"num_layers", whole(2)},
       {"num_experts", whole(4)},
       {"moe_ffn_hidden_size", whole(6)}},
      {{"decoder.layers.0.inner_layer.self_attention.linear_proj.weight", DType::kBF16, {8, 8}},
       {"decoder.layers.1.inner_layer.mlp.router.weight", DType::kBF16, {4, 8}},
       {"decoder.layers.1.inner_layer.mlp.experts.experts.linear_fc1.weight",
        DType::kBF16,
        {4, 12, 8}},
       {"decoder.layers.1.inner_layer.mlp.experts.experts.linear_fc2.weight",
        DType::kBF16,
        {4, 8, 6}}}};
  EXPECT_THAT(messages_of(contradicted_arguments(run.args, run.tensors)), IsEmpty());
  EXPECT_THAT(run.with("num_experts", whole(5)), ElementsAre("num_experts"));
  EXPECT_THAT(run.with("moe_ffn_hidden_size", whole(7)), ElementsAre("moe_ffn_hidden_size"));
  EXPECT_THAT(run.with("hybrid_layer_pattern", text("EV")), ElementsAre("hybrid_layer_pattern"));
  EXPECT_THAT(run.with("num_layers", whole(1)), Contains("num_layers"));
}

TEST(ArgumentCheck, LooksAtTheLanguageModelOnly) {
  SavedRun run = dense_run();
  for (TensorDesc& tensor : run.tensors) tensor.name.insert(0, "language_model.");
  run.tensors.push_back(
      {"vision_model.decoder.layers.5.mlp.linear_fc1.weight", DType::kBF16, {40, 20}});
  run.tensors.push_back(
      {"vision_model.decoder.layers.5.self_attention.linear_qkv.bias", DType::kBF16, {60}});
  EXPECT_THAT(messages_of(contradicted_arguments(run.args, run.tensors)), IsEmpty());
  EXPECT_THAT(run.with("num_query_groups", whole(4)), ElementsAre("num_query_groups"));
}

TEST(ArgumentCheck, TakesWhatIsLeftOutForNoStatement) {
  const SavedRun run = dense_run();
  EXPECT_THAT(contradicted_arguments({}, run.tensors), IsEmpty());
  for (const auto& [name, value] : run.args) {
    Arguments fewer = run.args;
    fewer.erase(name);
    EXPECT_THAT(messages_of(contradicted_arguments(fewer, run.tensors)), IsEmpty()) << name;
  }
}

TEST(ArgumentCheck, LeavesLayersAloneThatAreToldOneByOne) {
  SavedRun run = dense_run();
  run.args["heterogeneous_layers_config_path"] = text("blocks.json");
  EXPECT_THAT(run.with("ffn_hidden_size", whole(9)), IsEmpty());
  EXPECT_THAT(run.with("num_layers", whole(9)), ElementsAre("num_layers"));
}

TEST(ArgumentCheck, CountsWhatCouldBeHeldAgainstTheTensors) {
  const SavedRun run = dense_run();
  // No layer is of experts or of latent attention, so nothing speaks of their sizes.
  EXPECT_THAT(
      check_arguments(run.args, run.tensors).held,
      ElementsAre("add_bias_linear", "add_qkv_bias", "ffn_hidden_size", "group_query_attention",
                  "hidden_size", "kv_channels", "multi_latent_attention", "normalization",
                  "num_attention_heads", "num_layers", "num_query_groups", "padded_vocab_size",
                  "position_embedding_type", "qk_layernorm", "swiglu",
                  "untie_embeddings_and_output_weights", "vocab_size"));
  const SavedRun latent = latent_run(4);
  EXPECT_THAT(check_arguments(latent.args, latent.tensors).held,
              ElementsAre("kv_lora_rank", "moe_shared_expert_intermediate_size",
                          "multi_latent_attention", "num_attention_heads", "q_lora_rank",
                          "qk_head_dim", "qk_layernorm", "qk_pos_emb_head_dim", "v_head_dim"));
  const SavedRun experts = expert_run();
  EXPECT_THAT(check_arguments(experts.args, experts.tensors).held,
              testing::IsSupersetOf({"moe_ffn_hidden_size", "moe_layer_freq", "num_experts"}));
  const Arguments others = {{"seq_length", whole(128)}, {"lr", ArgValue{0.1}}};
  EXPECT_THAT(check_arguments(others, run.tensors).held, IsEmpty());
  EXPECT_THAT(check_arguments(run.args, {}).held, IsEmpty());
  // What is contradicted was held too.
  const SavedRun wrong{{{"num_experts", whole(8)}}, run.tensors};
  EXPECT_THAT(check_arguments(wrong.args, wrong.tensors).held, ElementsAre("num_experts"));
}

TEST(ArgumentCheck, SaysWhatTheTensorsShow) {
  const SavedRun run = dense_run();
  Arguments args = run.args;
  args["num_query_groups"] = whole(4);
  const auto found = contradicted_arguments(args, run.tensors);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].message,
            "argument num_query_groups is 4, but tensor "
            "decoder.layers.0.self_attention.linear_qkv.weight (16, 8) shows 2");
}

TEST(ArgumentCheck, HoldsTheHeadsOfEachLayer) {
  const SavedRun run = dense_run();
  Arguments args = run.args;
  const std::int64_t heads = std::get<std::int64_t>(args.at("num_attention_heads"));
  args["num_attention_heads"] = whole(7);
  args["num_attention_heads_per_layer"] = std::vector<std::int64_t>(2, heads);
  EXPECT_THAT(messages_of(contradicted_arguments(args, run.tensors)), IsEmpty());
  args["num_attention_heads_per_layer"] = std::vector<std::int64_t>{heads, heads + 1};
  EXPECT_THAT(names_of_arguments(contradicted_arguments(args, run.tensors)),
              ElementsAre("num_attention_heads_per_layer"));
}

}  // namespace
}  // namespace shardwright
