// SPDX-License-Identifier: Apache-2.0
#include "state/run_config_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "state/run_config.h"
#include "state/yaml_lines.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kOrdinary = R"(_target_: megatron.bridge.training.config.ConfigContainer
checkpoint:
  ckpt_format: torch_dist
  save: /data/run  # where it was
  save_optim: true
  save_rng: true
model:
  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider
  autocast_dtype:
    _call_: false
    _target_: torch.bfloat16
  bf16: true
  cuda_graph_modules: []
  fp16: false
  linear_attention_freq:
  - 1
  - 0
  microbatch_group_size_per_vp_stage: 2
  mtp_num_layers: 1
  num_layers_in_first_pipeline_stage: 2
  params_dtype:
    _call_: false
    _target_: torch.bfloat16
  pipeline_dtype: null
  pipeline_model_parallel_size: 2
  sequence_parallel: true
  tensor_model_parallel_size: 2
  vision_config:
    dtype:
      _call_: false
      _target_: torch.bfloat16
    depth: 2
rng:
  seed: 1234
)";

RunConfigEdits edits_of(std::int64_t tp, std::int64_t pp) {
  RunConfigEdits edits;
  edits.layout = {{"tensor_model_parallel_size", tp},
                  {"pipeline_model_parallel_size", pp},
                  {"expert_model_parallel_size", std::int64_t{1}},
                  {"virtual_pipeline_model_parallel_size", ArgValue{}},
                  {"decoder_first_pipeline_num_layers", ArgValue{}},
                  {"padded_vocab_size", std::int64_t{512}}};
  edits.format = "torch_dist";
  return edits;
}

std::string edited(std::string_view yaml, const RunConfigEdits& edits) {
  const auto text = edited_run_config(yaml, edits);
  return text ? *text : text.error().text();
}

// What an edit leaves: the lines of `before` that are not among those of `after`.
std::vector<std::string> lines_gone(std::string_view before, std::string_view after) {
  std::vector<std::string> gone;
  while (!before.empty()) {
    const std::string_view line = before.substr(0, before.find('\n') + 1);
    if (!after.contains(line)) gone.emplace_back(line.substr(0, line.size() - 1));
    before.remove_prefix(line.size());
  }
  return gone;
}

TEST(RunConfigEdits, SayTheNewSizesAndLeaveTheRest) {
  const std::string text = edited(kOrdinary, edits_of(1, 1));
  const Arguments model = read_run_config(text).value();
  EXPECT_EQ(model.at("tensor_model_parallel_size"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at("pipeline_model_parallel_size"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at("expert_model_parallel_size"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at("num_layers_in_first_pipeline_stage"), ArgValue{});
  EXPECT_EQ(model.at("microbatch_group_size_per_vp_stage"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at("sequence_parallel"), ArgValue{false});
  EXPECT_EQ(model.at("mtp_num_layers"), ArgValue{});
  EXPECT_THAT(text, Not(HasSubstr("padded_vocab_size")));
  EXPECT_THAT(text, Not(HasSubstr("/data/run")));
  EXPECT_EQ(lines_gone(kOrdinary, text),
            (std::vector<std::string>{
                "  save: /data/run  # where it was", "  save_optim: true", "  save_rng: true",
                "  microbatch_group_size_per_vp_stage: 2", "  mtp_num_layers: 1",
                "  num_layers_in_first_pipeline_stage: 2", "  pipeline_model_parallel_size: 2",
                "  sequence_parallel: true", "  tensor_model_parallel_size: 2"}));
}

// What a hybrid model's pattern says of its stages, and rules by which the old layout was split.
TEST(RunConfigEdits, SayTheSplitOfStages) {
  std::string before(kOrdinary);
  before.replace(before.find("  tensor_model_parallel_size: 2\n"), 0,
                 "  account_for_embedding_in_pipeline_split: true\n"
                 "  hybrid_layer_pattern: 'M*G|-'\n");
  RunConfigEdits edits = edits_of(1, 2);
  edits.layout.emplace_back("account_for_embedding_in_pipeline_split", false);
  edits.layout.emplace_back("account_for_loss_in_pipeline_split", false);
  edits.layout.emplace_back("hybrid_layer_pattern", "*M|G-");
  const std::string text = edited(before, edits);
  const Arguments model = read_run_config(text).value();
  EXPECT_EQ(model.at("account_for_embedding_in_pipeline_split"), ArgValue{false});
  EXPECT_EQ(model.at("hybrid_layer_pattern"), ArgValue{std::string("*M|G-")});
  EXPECT_THAT(text, Not(HasSubstr("account_for_loss"))) << "which the provider does not name";
}

TEST(RunConfigEdits, SayTheSizesOfExpertsTheTokenizersAndThePaddings) {
  std::string before(kOrdinary);
  before.replace(before.find("rng:\n"), 0,
                 "tokenizer:\n  make_vocab_size_divisible_by: 128\n"
                 "  tensor_model_parallel_size: 2\n");
  before.replace(before.find("  tensor_model_parallel_size: 2\n"), 0,
                 "  expert_tensor_parallel_size: 2\n  make_vocab_size_divisible_by: 128\n"
                 "  should_pad_vocab: false\n");
  RunConfigEdits edits = edits_of(4, 2);
  edits.layout.emplace_back("expert_tensor_parallel_size", std::int64_t{1});
  edits.vocabulary_divisor = 16;
  const std::string text = edited(before, edits);
  const Arguments model = read_run_config(text).value();
  EXPECT_EQ(model.at("expert_tensor_parallel_size"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at("make_vocab_size_divisible_by"), ArgValue{std::int64_t{16}});
  EXPECT_EQ(model.at("should_pad_vocab"), ArgValue{true});
  EXPECT_THAT(text, HasSubstr("tokenizer:\n  make_vocab_size_divisible_by: 128\n"
                              "  tensor_model_parallel_size: 4\n"));
}

TEST(RunConfigEdits, GiveStagesAType) {
  RunConfigEdits edits = edits_of(4, 4);
  edits.has_optimizer = edits.has_rng = edits.has_prediction_layers = true;
  const std::string text = edited(kOrdinary, edits);
  EXPECT_THAT(text,
              HasSubstr("  pipeline_dtype:\n    _call_: false\n    _target_: torch.bfloat16\n"));
  EXPECT_THAT(text, HasSubstr("  sequence_parallel: true\n  tensor_model_parallel_size: 4\n"));
  EXPECT_THAT(text, HasSubstr("  save_optim: true\n  save_rng: true\n"));
  EXPECT_THAT(text, HasSubstr("  mtp_num_layers: 1\n"));
}

TEST(RunConfigEdits, SayTheNewType) {
  RunConfigEdits edits = edits_of(2, 2);
  edits.dtype = DType::kF16;
  const std::string text = edited(kOrdinary, edits);
  EXPECT_THAT(text, HasSubstr("  bf16: false\n"));
  EXPECT_THAT(text, HasSubstr("  fp16: true\n"));
  EXPECT_THAT(text, Not(HasSubstr("torch.bfloat16")));
}

TEST(RunConfigEdits, WrapTheModelForComponentsAndBack) {
  RunConfigEdits edits = edits_of(2, 1);
  std::vector<Component> components(2);
  components[0].name = "language";
  components[0].tensor = 2;
  components[1].name = "images";
  components[1].data = 3;
  components[1].rank_offset = 2;
  edits.components = components;
  edits.has_prediction_layers = true;
  const std::string text = edited(kOrdinary, edits);
  const Arguments model = read_run_config(text).value();
  const std::string at = "megatron_mimo_parallelism_config.module_parallelisms.";
  EXPECT_EQ(model.at(at + "images.data_parallel_size"), ArgValue{std::int64_t{3}});
  EXPECT_EQ(model.at(at + "images.rank_offset"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at(at + "language.tensor_model_parallel_size"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at("standard_provider.pipeline_model_parallel_size"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at("standard_provider.linear_attention_freq"),
            (ArgValue{std::vector<std::int64_t>{1, 0}}));
  RunConfigEdits back = edits_of(2, 2);
  back.has_prediction_layers = back.has_optimizer = back.has_rng = true;
  const std::string ordinary = edited(text, back);
  EXPECT_THAT(
      lines_gone(ordinary.substr(ordinary.find("model:")), kOrdinary),
      testing::ElementsAre("  expert_model_parallel_size: 1",
                           "  num_layers_in_first_pipeline_stage: null", "  pipeline_dtype:"));
}

// What is written behind an open quote is inside of that text, and beside keys that are no text
// there is no place.
TEST(RunConfigEdits, RefuseWhatWouldNotBeThere) {
  for (const char* yaml : {"model:\n  a: 1\n  b: \"\n", "model:\n:\n_"}) {
    const Result<std::string> edited = edited_run_config(yaml, edits_of(2, 1));
    ASSERT_FALSE(edited) << *edited;
    EXPECT_EQ(edited.error().code, Code::kYamlCorrupt);
  }
}

TEST(RunConfigEdits, RefuseOtherStyles) {
  const auto flow = edited_run_config("model: {tensor_model_parallel_size: 2}", edits_of(1, 1));
  ASSERT_FALSE(flow);
  EXPECT_EQ(flow.error().code, Code::kYamlCorrupt);
  EXPECT_THAT(flow.error().message, HasSubstr("model.tensor_model_parallel_size"));
  EXPECT_EQ(edited_run_config("model: [", edits_of(1, 1)).error().code, Code::kYamlCorrupt);
  EXPECT_EQ(edited_run_config(std::string(2 << 20, 'x'), edits_of(1, 1)).error().code,
            Code::kLimit);
  // An anchor that another entry asks for can't be taken out.
  const auto anchor = edited_run_config(
      "checkpoint:\n  save: &a x\nmodel:\n  tensor_model_parallel_size: 2\nother: *a\n",
      edits_of(1, 1));
  EXPECT_FALSE(anchor);
}

}  // namespace
}  // namespace shardwright
