// SPDX-License-Identifier: Apache-2.0
#include "model/yarn_magnitude.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/config.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using Json = nlohmann::json;

constexpr double kFactor = 4.0;
constexpr double kClose = 1e-11;

// What both sides call the concentration of that mscale.
double yarn_times(double mscale) { return 0.1 * mscale * std::log(kFactor) + 1.0; }

double value_of(const Arguments& values, const std::string& name) {
  const ArgValue* found = find_set(values, name);
  const auto number = found == nullptr ? std::nullopt : as_number(*found);
  if (!number) throw std::runtime_error("nothing says " + name);
  return *number;
}

// By how much Megatron-Core multiplies with these arguments.
double megatron_times(const Arguments& args) {
  return yarn_times(value_of(args, "mscale")) / yarn_times(value_of(args, "mscale_all_dim"));
}

// By how much transformers multiplies with these settings.
double transformers_times(const Json& rope) {
  if (rope.contains("attention_factor")) return rope["attention_factor"];
  const double mscale = rope.value("mscale", 0.0);
  const double all_dim = rope.value("mscale_all_dim", 0.0);
  if (mscale == 0.0 || all_dim == 0.0) return yarn_times(1.0);
  return yarn_times(mscale) / yarn_times(all_dim);
}

Json yarn_model(const std::string& family, const Json& settings) {
  const Mapping mapping = shipped(family);
  Json json = {{"hidden_size", 64},
               {"intermediate_size", 96},
               {"num_attention_heads", 4},
               {"num_key_value_heads", 4},
               {"num_hidden_layers", 4},
               {"vocab_size", 128},
               {"q_lora_rank", 24},
               {"kv_lora_rank", 16},
               {"qk_nope_head_dim", 16},
               {"qk_rope_head_dim", 8},
               {"v_head_dim", 16},
               {"n_routed_experts", 16},
               {"n_shared_experts", 1},
               {"moe_intermediate_size", 32},
               {"first_k_dense_replace", 1},
               {"num_experts_per_tok", 2},
               {"rope_theta", 5000.0},
               {"max_position_embeddings", 256},
               {"model_type", mapping.model_types[0]}};
  json["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", kFactor}, {"original_max_position_embeddings", 64}};
  json["rope_scaling"].update(settings);
  return json;
}

Arguments args_of_yarn(const std::string& family, const Json& settings) {
  const auto config = read_hf_config(yarn_model(family, settings).dump());
  if (!config) throw std::runtime_error(config.error().message);
  const auto made = args_from_hf_config(shipped(family), *config);
  if (!made) throw std::runtime_error(made.error().message);
  return Arguments(made->values.begin(), made->values.end());
}

Json yarn_of_run(const std::string& family, const Arguments& run) {
  const auto made = config_from_args(shipped(family), run);
  if (!made) throw std::runtime_error(made.error().message);
  return Json::parse(made->json)["rope_scaling"];
}

const std::vector<Json> kSettings = {{{"mscale", 0.6}},
                                     {{"mscale_all_dim", 0.7}},
                                     {{"mscale", 0.6}, {"mscale_all_dim", 0.0}},
                                     {{"mscale", 0.0}, {"mscale_all_dim", 0.7}},
                                     {{"mscale", 0.6}, {"mscale_all_dim", 0.7}},
                                     {{"attention_factor", 1.5}},
                                     {{"attention_factor", 1.2862943611198906}},
                                     {{"attention_factor", 0.9}, {"mscale_all_dim", 0.7}}};

TEST(YarnMagnitude, IsThatOfTransformersInMegatron) {
  for (const char* family : {"qwen3", "deepseek_v3"}) {
    for (const Json& settings : kSettings) {
      const Arguments args = args_of_yarn(family, settings);
      EXPECT_NEAR(megatron_times(args), transformers_times(settings), kClose)
          << family << ' ' << settings;
      EXPECT_FALSE(args.contains("yarn_attention_factor"));
    }
    EXPECT_EQ(find_set(args_of_yarn(family, Json::object()), "mscale"), nullptr)
        << "what nothing says is the default of both";
  }
}

// That of latent attention scales logits too, on both sides.
TEST(YarnMagnitude, LeavesTheScaleOfLogits) {
  EXPECT_EQ(value_of(args_of_yarn("deepseek_v3", {{"mscale_all_dim", 0.7}}), "mscale_all_dim"),
            0.7);
  EXPECT_EQ(value_of(args_of_yarn("qwen3", {{"mscale_all_dim", 0.7}}), "mscale_all_dim"), 0.0);
}

TEST(YarnMagnitude, IsThatOfMegatronInTransformers) {
  for (const char* family : {"qwen3", "deepseek_v3"}) {
    Arguments run = args_of_yarn(family, {{"mscale", 0.6}, {"mscale_all_dim", 0.7}});
    run.erase("yarn_mscale");
    run.erase("yarn_mscale_all_dim");
    for (const double mscale : {0.0, 0.6, 1.0, 1.3}) {
      for (const double all_dim : {0.0, 0.7}) {
        run["mscale"] = mscale;
        run["mscale_all_dim"] = all_dim;
        const Json rope = yarn_of_run(family, run);
        EXPECT_NEAR(transformers_times(rope), megatron_times(run), kClose)
            << family << ' ' << mscale << ' ' << all_dim;
        EXPECT_EQ(rope["mscale_all_dim"], all_dim);
        const bool is_usual = mscale == 1.0 && all_dim == 0.0;
        EXPECT_EQ(rope.contains("attention_factor"),
                  !is_usual && (mscale == 0.0 || all_dim == 0.0));
      }
    }
  }
}

TEST(YarnMagnitude, ComesBackAsItWas) {
  for (const Json& settings : kSettings) {
    const Arguments args = args_of_yarn("qwen3", settings);
    const Json rope = yarn_of_run("qwen3", args);
    EXPECT_EQ(args_of_yarn("qwen3", rope), args) << settings;
  }
  const Json rope = yarn_of_run("qwen3", args_of_yarn("qwen3", {{"attention_factor", 1.5}}));
  EXPECT_EQ(rope["attention_factor"], 1.5);
}

// Logarithms of such factors divide by nothing.
TEST(YarnMagnitude, OfNoGrowthIsLeft) {
  for (const double factor : {1.0, 0.5, 0.0, -2.0}) {
    const Arguments args = args_of_yarn("qwen3", {{"factor", factor}, {"mscale", 0.6}});
    EXPECT_EQ(value_of(args, "mscale"), 0.6) << factor;
    EXPECT_EQ(find_set(args, "mscale_all_dim"), nullptr) << factor;
  }
}

}  // namespace
}  // namespace shardwright
