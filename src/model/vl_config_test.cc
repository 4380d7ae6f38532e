// SPDX-License-Identifier: Apache-2.0
// What vision-language families make of published configurations, which leave out what their
// classes have as defaults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

Json llava_7b() {
  return Json::parse(R"({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
    "image_token_index": 32000, "projector_hidden_act": "gelu", "tie_word_embeddings": false,
    "torch_dtype": "float16", "vision_feature_layer": -2,
    "vision_feature_select_strategy": "default", "vocab_size": 32064,
    "text_config": {"_name_or_path": "vicuna", "max_position_embeddings": 4096,
      "model_type": "llama", "rms_norm_eps": 1e-05, "torch_dtype": "float16", "vocab_size": 32064},
    "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
      "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24,
      "patch_size": 14, "projection_dim": 768, "vocab_size": 32000}})");
}

Json llava_next_mistral() {
  Json json = llava_7b();
  json["architectures"] = {"LlavaNextForConditionalGeneration"};
  json["model_type"] = "llava_next";
  json["text_config"] = Json::parse(R"({"intermediate_size": 14336, "model_type": "mistral",
    "max_position_embeddings": 32768, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0, "sliding_window": null, "vocab_size": 32064})");
  return json;
}

Json llava_onevision_small() {
  return Json::parse(R"({"architectures": ["LlavaOnevisionForConditionalGeneration"],
    "model_type": "llava_onevision", "tie_word_embeddings": false, "torch_dtype": "float16",
    "image_token_index": 151646, "video_token_index": 151647, "vision_feature_layer": -1,
    "text_config": {"hidden_size": 896, "intermediate_size": 4864, "model_type": "qwen2",
      "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "vocab_size": 152000},
    "vision_config": {"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304,
      "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 26,
      "patch_size": 14, "vision_use_head": false}})");
}

Json internvl_chat_large() {
  return Json::parse(R"({"architectures": ["InternVLChatModel"], "model_type": "internvl_chat",
    "downsample_ratio": 0.5, "hidden_size": 8192, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16",
    "llm_config": {"architectures": ["Qwen2ForCausalLM"], "hidden_size": 8192,
      "intermediate_size": 29568, "max_position_embeddings": 32768, "model_type": "qwen2",
      "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
      "rope_scaling": {"factor": 2.0, "rope_type": "dynamic", "type": "dynamic"},
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "vocab_size": 151674},
    "vision_config": {"hidden_size": 3200, "image_size": 448, "intermediate_size": 12800,
      "model_type": "intern_vit_6b", "norm_type": "rms_norm", "num_attention_heads": 25,
      "num_channels": 3, "num_hidden_layers": 45, "patch_size": 14, "qk_normalization": true,
      "qkv_bias": false}})");
}

ArgsFromConfig converted(const Json& json) {
  const HfConfig config = read_hf_config(json.dump()).value();
  return args_from_hf_config(**find_family(shipped_mappings(), config), config).value();
}

/// config.json -> arguments -> config.json.
Json there_and_back(const Json& json) {
  const HfConfig config = read_hf_config(json.dump()).value();
  const Mapping& family = **find_family(shipped_mappings(), config);
  const ArgsFromConfig args = args_from_hf_config(family, config).value();
  const Arguments values(args.values.begin(), args.values.end());
  return Json::parse(config_from_args(family, values)->json);
}

auto has(const std::string& name, ArgValue value) { return Contains(Pair(name, std::move(value))); }

TEST(Llava, IsLlamaWithClipWhereItsFileDoesNotSay) {
  const auto values = converted(llava_7b()).values;
  EXPECT_THAT(values, AllOf(has("num_layers", 32L), has("hidden_size", 4096L),
                            has("ffn_hidden_size", 11008L), has("num_query_groups", 32L),
                            has("kv_channels", 128L), has("padded_vocab_size", 32064L)));
  EXPECT_THAT(values, AllOf(has("add_qkv_bias", false), has("qk_layernorm", false),
                            has("add_bias_linear", false), has("fp16", true),
                            has("untie_embeddings_and_output_weights", true),
                            has("position_embedding_type", std::string("rope"))));
  EXPECT_THAT(values, AllOf(has("vision_model_type", std::string("clip")), has("img_h", 336L),
                            has("img_w", 336L), has("patch_dim", 14L), has("use_tiling", false),
                            has("vision_feature_layer", -2L)));
}

// As published: of the tower it has a name and a width.
Json original_llava() {
  return Json::parse(R"({"architectures": ["LlavaQwenForCausalLM"], "model_type": "llava",
    "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "image_aspect_ratio": "anyres_max_9",
    "mm_hidden_size": 1152, "mm_patch_merge_type": "spatial_unpad",
    "mm_projector_type": "mlp2x_gelu", "mm_vision_select_feature": "patch",
    "mm_vision_select_layer": -2, "mm_vision_tower": "google/siglip-so400m-patch14-384"})");
}

TEST(OriginalLlava, KnowsTowersByTheirNames) {
  EXPECT_THAT(converted(original_llava()).values,
              AllOf(has("vision_num_attention_heads", 16L), has("vision_hidden_size", 1152L),
                    has("vision_ffn_hidden_size", 4304L), has("img_h", 384L), has("img_w", 384L),
                    has("patch_dim", 14L), has("vision_model_type", std::string("siglip")),
                    has("use_tiling", true), has("add_qkv_bias", true)));
  Json json = original_llava();
  json["mm_vision_tower"] = "checkpoints/clip-vit-large-patch14/";
  EXPECT_THAT(converted(json).values,
              AllOf(has("vision_ffn_hidden_size", 4096L), has("img_h", 224L)));
  json["vision_config"] = {{"intermediate_size", 52}};
  EXPECT_THAT(converted(json).values, has("vision_ffn_hidden_size", 52L));
}

TEST(OriginalLlava, AsksForSizesOfTowersThatItDoesNotKnow) {
  Json json = original_llava();
  json["mm_vision_tower"] = "a-tower-of-mine";
  const HfConfig config = read_hf_config(json.dump()).value();
  const Mapping& family = **find_family(shipped_mappings(), config);
  const auto sizes = sizes_from_hf_config(family, config);
  ASSERT_FALSE(sizes);
  EXPECT_THAT(sizes.error().message, testing::HasSubstr("config.json: vision_config."));
  json["mm_projector_type"] = "linear";
  const HfConfig linear = read_hf_config(json.dump()).value();
  EXPECT_FALSE(find_family(shipped_mappings(), linear));
}

TEST(OriginalLlava, KeepsWhatItsConfigSays) {
  Json json = original_llava();
  const Json back = there_and_back(json);
  for (const char* key : {"architectures", "hidden_size", "num_key_value_heads", "mm_hidden_size",
                          "mm_vision_tower", "mm_vision_select_layer", "mm_vision_select_feature",
                          "mm_projector_type", "mm_patch_merge_type", "image_aspect_ratio"}) {
    EXPECT_EQ(back[key], json[key]) << key;
  }
}

// As published, with the scaling that its long contexts have.
TEST(Llama4Vl, KeepsTheScalingOfItsRotaryEmbedding) {
  const Json json = Json::parse(R"({"architectures": ["Llama4ForConditionalGeneration"],
    "model_type": "llama4", "tie_word_embeddings": false,
    "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
      "intermediate_size_mlp": 16384, "head_dim": 128, "num_attention_heads": 40,
      "num_key_value_heads": 8, "num_hidden_layers": 48, "num_local_experts": 16,
      "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "vocab_size": 202048,
      "max_position_embeddings": 10485760, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "rope_scaling": {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "use_qk_norm": true},
    "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 1408, "image_size": 336,
      "intermediate_size": 5632, "num_attention_heads": 16, "num_hidden_layers": 34,
      "patch_size": 14, "vision_output_dim": 4096}})");
  EXPECT_THAT(converted(json).values,
              AllOf(has("use_rope_scaling", true), has("rope_scaling_factor", 16.0)));
  const Json back = there_and_back(json);
  ASSERT_TRUE(back.contains("text_config")) << back;
  const Json& scaling = back["text_config"]["rope_scaling"];
  EXPECT_EQ(scaling.value("rope_type", ""), "llama3") << back;
  EXPECT_EQ(scaling.value("factor", 0.0), 16.0) << back;
}

TEST(Llava, TakesItsLanguageModelsTypeFromArguments) {
  EXPECT_EQ(there_and_back(llava_7b())["text_config"]["model_type"], "llama");
  Json json = llava_7b();
  for (const char* type : {"qwen2", "qwen3"}) {
    json["text_config"]["model_type"] = type;
    EXPECT_EQ(there_and_back(json)["text_config"]["model_type"], type);
  }
  json = llava_next_mistral();
  EXPECT_THAT(converted(json).values,
              AllOf(has("num_query_groups", 8L), has("ffn_hidden_size", 14336L),
                    has("window_size", ArgValue{}), has("rotary_base", 1000000L)));
  json["text_config"]["sliding_window"] = 4096;
  const Json back = there_and_back(json);
  EXPECT_EQ(back["text_config"]["model_type"], "mistral");
  EXPECT_EQ(back["text_config"]["sliding_window"], 4096);
}

TEST(Llava, IsTiedWhereverItsFileSaysSo) {
  Json json = llava_onevision_small();
  EXPECT_THAT(converted(json).values,
              AllOf(has("untie_embeddings_and_output_weights", false), has("add_qkv_bias", true),
                    has("vision_model_type", std::string("siglip"))));
  EXPECT_EQ(there_and_back(json)["tie_word_embeddings"], true);
  json["text_config"]["tie_word_embeddings"] = false;
  EXPECT_THAT(converted(json).values, has("untie_embeddings_and_output_weights", true));
  json["tie_word_embeddings"] = true;
  EXPECT_THAT(converted(json).values, has("untie_embeddings_and_output_weights", false));
}

// As published: Qwen 2's defaults are those of its language model.
TEST(Qwen2Audio, HasTheSizesOfQwen2WhereItsFileDoesNotSay) {
  Json json = Json::parse(R"({"architectures": ["Qwen2AudioForConditionalGeneration"],
    "model_type": "qwen2_audio", "audio_token_index": 151646, "torch_dtype": "bfloat16",
    "vocab_size": 156032,
    "audio_config": {"d_model": 1280, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120,
      "encoder_layers": 32, "model_type": "qwen2_audio_encoder", "num_mel_bins": 128},
    "text_config": {"intermediate_size": 11008, "max_position_embeddings": 8192,
      "model_type": "qwen2", "rms_norm_eps": 1e-05, "rope_theta": 10000, "sliding_window": 32768,
      "vocab_size": 156032}})");
  EXPECT_THAT(converted(json).values,
              AllOf(has("num_layers", 32L), has("hidden_size", 4096L),
                    has("num_attention_heads", 32L), has("num_query_groups", 32L),
                    has("ffn_hidden_size", 11008L), has("padded_vocab_size", 156032L)));
  EXPECT_THAT(converted(json).values,
              AllOf(has("add_qkv_bias", true), has("untie_embeddings_and_output_weights", true),
                    has("position_embedding_type", std::string("rope"))));
  const Json back = there_and_back(json);
  EXPECT_EQ(back["text_config"]["model_type"], "qwen2");
  EXPECT_EQ(back["text_config"]["intermediate_size"], 11008);
  json["text_config"]["model_type"] = "llama";
  EXPECT_FALSE(find_family(shipped_mappings(), read_hf_config(json.dump()).value()));
}

TEST(Exaone45, TowersQueriesShareKeysAndValues) {
  Json json = Json::parse(R"({"architectures": ["Exaone4_5_ForConditionalGeneration"],
    "model_type": "exaone4_5", "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "text_config": {"head_dim": 128, "hidden_size": 5120, "intermediate_size": 27392,
      "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
        "full_attention"], "model_type": "exaone4", "num_attention_heads": 40,
      "num_hidden_layers": 4, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}, "sliding_window": 4096,
      "vocab_size": 153600},
    "vision_config": {"depth": 28, "hidden_size": 2048, "intermediate_size": 5120,
      "model_type": "exaone4_5_vision", "num_heads": 32, "out_hidden_size": 5120}})");
  const auto values = converted(json).values;
  EXPECT_THAT(values, AllOf(has("mtp_num_layers", 1L), has("window_attn_skip_freq", 4L),
                            has("qk_layernorm", true), has("add_qkv_bias", false),
                            has("position_embedding_type", std::string("rope"))));
  EXPECT_THAT(values, AllOf(has("vision_num_attention_heads", 32L),
                            has("vision_num_query_groups", 8L), has("vision_num_layers", 28L)));
  const Json back = there_and_back(json);
  EXPECT_EQ(back["vision_config"]["num_key_value_heads"], 8);
  EXPECT_EQ(back["text_config"]["layer_types"], json["text_config"]["layer_types"]);
  EXPECT_EQ(back["text_config"]["num_nextn_predict_layers"], 1);
}

// As published: two sections deep.
TEST(QwenOmni, HasItsLanguageModelInsideTheThinker) {
  Json json = Json::parse(R"({"architectures": ["Qwen2_5OmniModel"], "model_type": "qwen2_5_omni",
    "enable_audio_output": true, "torch_dtype": "bfloat16",
    "talker_config": {"hidden_size": 896, "num_hidden_layers": 24, "rope_theta": 1000000.0,
      "rope_scaling": {"mrope_section": [16, 0, 0], "rope_type": "default", "type": "default"}},
    "thinker_config": {"model_type": "qwen2_5_omni_thinker", "torch_dtype": "bfloat16",
      "audio_config": {"d_model": 1280}, "vision_config": {"depth": 32},
      "text_config": {"model_type": "qwen2_5_omni_text", "hidden_size": 3584,
        "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28,
        "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "rope_scaling": {"mrope_section": [16, 24, 24], "rope_type": "default", "type": "default"},
        "vocab_size": 152064}}})");
  const auto values = converted(json).values;
  EXPECT_THAT(values, AllOf(has("num_layers", 28L), has("hidden_size", 3584L),
                            has("num_query_groups", 4L), has("rotary_base", 1000000L),
                            has("padded_vocab_size", 152064L), has("add_qkv_bias", true)));
  EXPECT_THAT(values, AllOf(has("position_embedding_type", std::string("mrope")),
                            has("mrope_section", std::vector<std::int64_t>{16, 24, 24}),
                            has("untie_embeddings_and_output_weights", true), has("bf16", true)));
  const Json back = there_and_back(json);
  const Json& text = back["thinker_config"]["text_config"];
  EXPECT_EQ(text["hidden_size"], 3584);
  EXPECT_EQ(text["rope_theta"], 1000000);
  EXPECT_EQ(text["rope_scaling"]["mrope_section"], (std::vector<int>{16, 24, 24}));
  EXPECT_EQ(back["thinker_config"]["model_type"], "qwen2_5_omni_thinker");
}

// Megatron-LM does not start without them, and transformers has its own where config.json has none.
TEST(Vision, HasSectionsWhereverPositionsHaveAxes) {
  int families = 0;
  for (const Mapping& mapping : shipped_mappings()) {
    const ConfigRule* sections = nullptr;
    bool has_axes = false;
    for (const ConfigRule& rule : mapping.config) {
      if (rule.args.empty()) continue;
      if (rule.args[0] == "mrope_section") sections = &rule;
      has_axes |= rule.args[0] == "position_embedding_type" &&
                  std::ranges::any_of(rule.map, [](const auto& pair) {
                    return pair.second == ArgValue{std::string("mrope")};
                  });
    }
    if (!has_axes) continue;
    ++families;
    EXPECT_TRUE(sections != nullptr && sections->fallback.has_value()) << mapping.family;
  }
  EXPECT_GT(families, 8);
  const auto default_of = [](std::string_view family) {
    const Mapping& mapping = shipped(std::string(family));
    const auto rule = std::ranges::find_if(mapping.config, [](const ConfigRule& each) {
      return !each.args.empty() && each.args[0] == "mrope_section";
    });
    return *rule->fallback;
  };
  using Sections = std::vector<std::int64_t>;
  EXPECT_EQ(default_of("qwen2_5_vl"), ArgValue(Sections{16, 24, 24}));
  EXPECT_EQ(default_of("qwen3_vl"), ArgValue(Sections{24, 20, 20}));
  EXPECT_EQ(default_of("qwen3_5_vl"), ArgValue(Sections{11, 11, 10}));
  EXPECT_EQ(default_of("glm4_5v"), ArgValue(Sections{8, 12, 12}));
}

// Its class has no such setting, but published files do.
TEST(Qwen3VlMoe, NormalisesTheWeightsOfExperts) {
  Json json = Json::parse(R"({"architectures": ["Qwen3VLMoeForConditionalGeneration"],
    "model_type": "qwen3_vl_moe", "tie_word_embeddings": false,
    "text_config": {"model_type": "qwen3_vl_moe_text", "hidden_size": 2048, "head_dim": 128,
      "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32,
      "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
      "num_key_value_heads": 4, "norm_topk_prob": true, "rms_norm_eps": 1e-06,
      "rope_scaling": {"mrope_section": [24, 20, 20], "rope_type": "default"},
      "rope_theta": 5000000, "vocab_size": 151936},
    "vision_config": {"model_type": "qwen3_vl_moe", "depth": 27, "hidden_size": 1152,
      "intermediate_size": 4304, "num_heads": 16, "in_channels": 3, "out_hidden_size": 2048,
      "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
      "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]}})");
  ArgsFromConfig args = converted(json);
  EXPECT_THAT(args.values, has("moe_router_pre_softmax", ArgValue{false}));
  EXPECT_EQ(there_and_back(json)["text_config"]["norm_topk_prob"], true);
  Arguments run(args.values.begin(), args.values.end());
  run["moe_router_pre_softmax"] = ArgValue{true};
  const auto back = config_from_args(shipped("qwen3_vl_moe"), run);
  ASSERT_FALSE(back) << "transformers would compute something else";
  EXPECT_THAT(back.error().message, HasSubstr("moe_router_pre_softmax"));
  json["text_config"]["norm_topk_prob"] = false;
  args = converted(json);
  EXPECT_THAT(args.notes, Contains(HasSubstr("norm_topk_prob = False has no counterpart")));
}

TEST(ErnieVl, HasTwoWidthsOfExpertsInOneList) {
  Json json = Json::parse(R"({"architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
    "model_type": "ernie4_5_vl_moe", "tie_word_embeddings": true, "dtype": "bfloat16",
    "text_config": {"model_type": "ernie4_5_vl_moe_text", "hidden_size": 2560,
      "intermediate_size": 12288, "num_attention_heads": 20, "num_hidden_layers": 3,
      "num_key_value_heads": 4, "mlp_layer_types": ["dense", "sparse", "sparse"],
      "moe_intermediate_size": [1536, 512], "moe_k": 6, "moe_num_experts": 64,
      "moe_num_shared_experts": 2, "vocab_size": 103424},
    "vision_config": {"depth": 32}})");
  EXPECT_THAT(converted(json).values,
              AllOf(has("moe_ffn_hidden_size", 1536L), has("num_experts", 64L),
                    has("moe_shared_expert_intermediate_size", 3072L),
                    has("moe_intermediate_size", std::vector<std::int64_t>{1536, 512}),
                    has("moe_layer_freq", std::vector<std::int64_t>{0, 1, 1})));
  const Json back = there_and_back(json);
  EXPECT_EQ(back["text_config"]["moe_intermediate_size"], (std::vector<int>{1536, 512}));
  EXPECT_EQ(back["text_config"]["moe_num_experts"], 64);
  json["text_config"]["moe_num_experts"] = {64, 64};  // of older files, which have no section
  EXPECT_THAT(converted(json).values, has("num_experts", 64L));
  json["text_config"]["moe_intermediate_size"] = 1536;
  const HfConfig config = read_hf_config(json.dump()).value();
  const auto sizes = sizes_from_hf_config(**find_family(shipped_mappings(), config), config);
  ASSERT_FALSE(sizes);
  EXPECT_THAT(sizes.error().message, HasSubstr("moe_intermediate_size.0"));
}

TEST(LlamaNemotron, HandsItsBlocksOn) {
  const Json json = Json::parse(R"({"architectures": ["DeciLMForCausalLM"],
    "model_type": "nemotron-nas", "hidden_size": 8192, "intermediate_size": null,
    "num_attention_heads": 64, "num_hidden_layers": 2, "num_key_value_heads": null,
    "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "vocab_size": 128256,
    "block_configs": [
      {"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 2.625}},
      {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 5.25}}]})");
  const auto values = converted(json).values;
  EXPECT_THAT(values, AllOf(has("heterogeneous_block_specs", true), has("hidden_size", 8192L)));
  const auto encoded = std::ranges::find_if(values, [](const auto& value) {
    return value.first == "heterogeneous_layers_config_encoded_json";
  });
  ASSERT_NE(encoded, values.end());
  const Json text = Json::parse(std::get<std::string>(encoded->second));
  EXPECT_EQ(text["block_configs"], json["block_configs"]);
  EXPECT_EQ(there_and_back(json)["block_configs"], json["block_configs"]);
  Json plain = json;
  plain.erase("block_configs");
  EXPECT_FALSE(find_family(shipped_mappings(), read_hf_config(plain.dump()).value()));
}

TEST(InternVl, KeepsTheSettingsOfItsLargeTower) {
  const ArgsFromConfig args = converted(internvl_chat_large());
  EXPECT_THAT(args.values,
              AllOf(has("vision_model_type", std::string("internvit")), has("num_layers", 80L),
                    has("vision_num_layers", 45L), has("vision_hidden_size", 3200L),
                    has("pixel_shuffle", true), has("img_h", 448L),
                    has("vision_norm_type", std::string("rms_norm"))));
  EXPECT_THAT(args.values, has("position_embedding_type", std::string("rope")));
  EXPECT_THAT(args.notes, Contains(AllOf(HasSubstr("factor = 2"),
                                         HasSubstr("Megatron-Core computes nothing"))));
  const Json back = there_and_back(internvl_chat_large());
  EXPECT_EQ(back["llm_config"]["model_type"], "qwen2");
  EXPECT_EQ(back["vision_config"]["qk_normalization"], true);
  EXPECT_EQ(back["vision_config"]["norm_type"], "rms_norm");
  EXPECT_FALSE(back["vision_config"].contains("use_qk_norm"));
}

}  // namespace
}  // namespace shardwright
