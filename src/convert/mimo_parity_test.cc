// SPDX-License-Identifier: Apache-2.0
// The key set of the dense 27B Qwen3.5-VL with tiny shapes, to MIMO and back: every tensor comes
// back, and the 15 of the layer for multi-token prediction are ignored or kept by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convert/golden.h"
#include "layout/component_spec.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int kLayers = 64;
constexpr int kDepth = 27;
constexpr std::size_t kModelTensors = 1184;
constexpr std::size_t kPredictionTensors = 15;

const nlohmann::json kConfig = {
    {"architectures", {"Qwen3_5ForConditionalGeneration"}},
    {"model_type", "qwen3_5"},
    {"tie_word_embeddings", false},
    {"text_config",
     {{"model_type", "qwen3_5_text"},
      {"hidden_size", 8},
      {"intermediate_size", 12},
      {"vocab_size", 16},
      {"num_hidden_layers", kLayers},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 4},
      {"head_dim", 2},
      {"full_attention_interval", 4},
      {"linear_conv_kernel_dim", 4},
      {"linear_key_head_dim", 2},
      {"linear_num_key_heads", 4},
      {"linear_value_head_dim", 2},
      {"linear_num_value_heads", 8},
      {"mtp_num_hidden_layers", 1},
      {"hidden_act", "silu"},
      {"rms_norm_eps", 1e-6},
      {"max_position_embeddings", 64},
      {"rope_parameters",
       {{"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}}}}},
    {"vision_config",
     {{"model_type", "qwen3_5_vision"},
      {"depth", kDepth},
      {"hidden_size", 4},
      {"intermediate_size", 6},
      {"num_heads", 2},
      {"in_channels", 3},
      {"num_position_embeddings", 4},
      {"patch_size", 2},
      {"temporal_patch_size", 2},
      {"spatial_merge_size", 2},
      {"out_hidden_size", 8},
      {"hidden_act", "gelu_pytorch_tanh"}}},
};

// What transformers calls the tensors of such a model; written by hand.
class Names {
 public:
  std::vector<TensorDesc> take() {
    add("model.language_model.embed_tokens.weight", {16, 8});
    for (int i = 0; i < kLayers; ++i) {
      add_layer("model.language_model.layers." + std::to_string(i) + ".", i % 4 == 3);
    }
    add("model.language_model.norm.weight", {8});
    add("lm_head.weight", {16, 8});
    add_vision();
    EXPECT_EQ(descs_.size(), kModelTensors);
    add("mtp.fc.weight", {8, 16});
    for (const char* norm : {"norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"}) {
      add(std::string("mtp.") + norm + ".weight", {8});
    }
    add_layer("mtp.layers.0.", true);
    EXPECT_EQ(descs_.size(), kModelTensors + kPredictionTensors);
    return std::move(descs_);
  }

 private:
  void add(const std::string& name, Dims shape) { descs_.push_back({name, DType::kBF16, shape}); }

  void add_layer(const std::string& at, bool is_full) {
    add(at + "input_layernorm.weight", {8});
    add(at + "post_attention_layernorm.weight", {8});
    add(at + "mlp.gate_proj.weight", {12, 8});
    add(at + "mlp.up_proj.weight", {12, 8});
    add(at + "mlp.down_proj.weight", {8, 12});
    if (is_full) {
      add(at + "self_attn.q_proj.weight", {16, 8});  // queries and their gates
      add(at + "self_attn.k_proj.weight", {8, 8});
      add(at + "self_attn.v_proj.weight", {8, 8});
      add(at + "self_attn.o_proj.weight", {8, 8});
      add(at + "self_attn.q_norm.weight", {2});
      add(at + "self_attn.k_norm.weight", {2});
      return;
    }
    add(at + "linear_attn.in_proj_qkv.weight", {32, 8});
    add(at + "linear_attn.in_proj_z.weight", {16, 8});
    add(at + "linear_attn.in_proj_b.weight", {8, 8});
    add(at + "linear_attn.in_proj_a.weight", {8, 8});
    add(at + "linear_attn.conv1d.weight", {32, 1, 4});
    add(at + "linear_attn.A_log", {8});
    add(at + "linear_attn.dt_bias", {8});
    add(at + "linear_attn.norm.weight", {2});
    add(at + "linear_attn.out_proj.weight", {8, 16});
  }

  void add_both(const std::string& module, Dims weight) {
    add(module + ".weight", weight);
    add(module + ".bias", {weight[0]});
  }

  void add_vision() {
    const std::string tower = "model.visual.";
    add_both(tower + "patch_embed.proj", {4, 3, 2, 2, 2});
    add(tower + "pos_embed.weight", {4, 4});
    for (int i = 0; i < kDepth; ++i) {
      const std::string at = tower + "blocks." + std::to_string(i) + ".";
      add_both(at + "norm1", {4});
      add_both(at + "norm2", {4});
      add_both(at + "attn.qkv", {12, 4});
      add_both(at + "attn.proj", {4, 4});
      add_both(at + "mlp.linear_fc1", {6, 4});
      add_both(at + "mlp.linear_fc2", {4, 6});
    }
    add_both(tower + "merger.norm", {4});
    add_both(tower + "merger.linear_fc1", {16, 16});
    add_both(tower + "merger.linear_fc2", {8, 16});
  }

  std::vector<TensorDesc> descs_;
};

TEST(MimoParity, OfEveryTensorOfThe27BModel) {
  const TemporaryFolder out;
  put_model(out / "hf", kConfig.dump(), Names().take());
  const TensorMap source = read_all_tensors(out / "hf").value();
  for (const MtpPolicy policy : {MtpPolicy::kDefault, MtpPolicy::kKeep}) {
    const bool keeps = policy == MtpPolicy::kKeep;
    ConvertRequest there;
    there.input = out / "hf";
    there.output = out / "mimo";
    there.format = "mimo";
    const std::vector<std::string> layout = {"language=tp=4,dp=1", "images=tp=1"};
    there.components = parse_components(layout).value();
    there.mtp = policy;
    there.overwrite = true;
    const auto mimo = convert_now(there);
    ASSERT_TRUE(mimo) << mimo.error().text();
    const auto note = HasSubstr("15 tensors of prediction layers are dropped");
    EXPECT_THAT(mimo->notes, Contains(note).Times(keeps ? 0 : 1));
    ConvertRequest again;
    again.input = out / "mimo";
    again.output = out / "back";
    again.format = "hf";
    again.overwrite = true;
    const auto back = convert_now(again);
    ASSERT_TRUE(back) << back.error().text();
    TensorMap expected = source;
    if (!keeps) {
      std::erase_if(expected, [](const auto& entry) { return entry.first.starts_with("mtp."); });
    }
    EXPECT_EQ(expected.size(), kModelTensors + (keeps ? kPredictionTensors : 0));
    EXPECT_EQ(difference(read_all_tensors(out / "back").value(), expected), "");
  }
}

// The layers that were dropped come back from the model itself.
TEST(MimoParity, WithThePredictionLayersOfTheOriginal) {
  const TemporaryFolder out;
  put_model(out / "hf", kConfig.dump(), Names().take());
  ConvertRequest there;
  there.input = out / "hf";
  there.output = out / "mimo";
  there.format = "mimo";
  const std::vector<std::string> layout = {"language=tp=2", "images=tp=1"};
  there.components = parse_components(layout).value();
  ASSERT_TRUE(convert_now(there));
  ConvertRequest again;
  again.input = out / "mimo";
  again.output = out / "back";
  again.format = "hf";
  again.mtp = MtpPolicy::kKeep;
  again.mtp_from = out / "hf";
  const auto back = convert_now(again);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_THAT(back->notes, Contains(HasSubstr("15 tensors of prediction layers are taken from")));
  EXPECT_EQ(
      difference(read_all_tensors(out / "back").value(), read_all_tensors(out / "hf").value()), "");
}

}  // namespace
}  // namespace shardwright
