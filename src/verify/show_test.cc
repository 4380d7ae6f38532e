// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model of one float32 tensor.
void write_tensor(const Planted& planted, const std::vector<float>& values, const char* shape) {
  std::string payload(values.size() * sizeof(float), '\0');
  std::memcpy(payload.data(), values.data(), payload.size());
  planted.put_header("model.safetensors",
                     fmt::format(R"({{"t.w":{{"dtype":"F32","shape":{},"data_offsets":[0,{}]}}}})",
                                 shape, payload.size()),
                     payload);
}

TEST(Show, CountsAndMeasures) {
  const Planted planted;
  const float nan = std::nanf("");
  write_tensor(planted, {0, 1, -3, nan, HUGE_VALF, 2, 0, 0, 5, 7}, "[2,5]");
  const TensorReport report = show_tensor(planted.path(), "t.w", {}).value();
  EXPECT_EQ(report.elements, 10u);
  EXPECT_EQ(report.nan, 1u);
  EXPECT_EQ(report.infinite, 1u);
  EXPECT_EQ(report.zero, 3u);
  EXPECT_EQ(report.least, -3.0);
  EXPECT_EQ(report.greatest, 7.0);
  EXPECT_DOUBLE_EQ(*report.mean, 1.5);
  EXPECT_NEAR(*report.deviation, 2.95804, 1e-5);
  EXPECT_THAT(report.values, ElementsAre("0", "1", "-3", "nan", "inf", "2", "0", "0"));
  ASSERT_EQ(report.chunks.size(), 1u);
  EXPECT_EQ(report.files.front(), "model.safetensors");
}

// The parts that threads measure are put together right.
TEST(Show, DoesNotDependOnThreads) {
  const Planted planted;
  std::vector<float> values(300'000);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 1000) / 3 - 250;
    sum += values[i];
  }
  write_tensor(planted, values, "[300000]");
  const TensorReport one = show_tensor(planted.path(), "t.w", {.threads = 1}).value();
  EXPECT_NEAR(*one.mean, sum / static_cast<double>(values.size()), 1e-9);
  EXPECT_NEAR(*one.deviation, 96.225, 1e-3);
  for (const int threads : {5, 600}) {
    const TensorReport many = show_tensor(planted.path(), "t.w", {.threads = threads}).value();
    EXPECT_EQ(*one.mean, *many.mean);
    EXPECT_EQ(*one.deviation, *many.deviation);
  }
}

TEST(Show, FindsOneLayerOfAStack) {
  const std::string path = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const std::string name = "decoder.layers.2.self_attention.linear_qkv.weight";
  const TensorReport report = show_tensor(path, name, {}).value();
  EXPECT_EQ(report.stored, "decoder.layers.self_attention.linear_qkv.weight");
  EXPECT_EQ(report.desc.shape, (Dims{128, 64}));
  EXPECT_EQ(report.chunks.size(), 2u);
  for (const Chunk& chunk : report.chunks) EXPECT_EQ(chunk.box.origin[0], 2);
}

// Whatever a format calls it: a name of Megatron's is found in all of them.
TEST(Show, FindsTensorsOfTheModelByMegatronsNames) {
  const std::string name = "decoder.layers.1.self_attention.linear_qkv.weight";
  const TensorReport hf = show_tensor(golden_path("hf/llama3/hf"), name, {}).value();
  EXPECT_THAT(hf.stored, HasSubstr("model.layers.1.self_attn.q_proj.weight, "));
  EXPECT_EQ(hf.chunks.size(), 3U);
  const Planted made;
  Planted::convert("hf/llama3/hf", "fsdp_dtensor", {}, made.path());
  const TensorReport fsdp = show_tensor(made.path(), name, {}).value();
  EXPECT_EQ(fsdp.mean, hf.mean);
  EXPECT_EQ(fsdp.values, hf.values);
  const std::string state = "optimizer.state.exp_avg." + name;
  const std::string full = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const std::string buckets = golden_path("mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket");
  EXPECT_EQ(show_tensor(buckets, state, {}).value().deviation,
            show_tensor(full, state, {}).value().deviation);
  EXPECT_FALSE(show_tensor(buckets, "decoder.layers.9.x", {}));
}

// A name that only the model's family would tell may be one; what keeps it from being told is told.
TEST(Show, PassesOnWhatKeepsItFromTheModelsNames) {
  const Planted planted;
  write_tensor(planted, {1, 2}, "[2]");
  planted.put("config.json", R"({"model_type": "nobody_knows"})");
  const auto unknown = show_tensor(planted.path(), "decoder.layers.0.x", {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUsage) << unknown.error().message;
  EXPECT_THAT(unknown.error().message, HasSubstr("has no tensor 'decoder.layers.0.x'"));
  planted.put("config.json", R"({"model_type": "llama",})");
  const auto broken = show_tensor(planted.path(), "decoder.layers.0.x", {});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kJsonCorrupt) << broken.error().message;
}

TEST(Show, HintsAtTheNameThatWasMeant) {
  const auto report = show_tensor(golden_path("hf/llama3/hf"), "model.norm.weigth", {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kUsage);
  EXPECT_THAT(report.error().message, HasSubstr("did you mean model.norm.weight?"));
}

}  // namespace
}  // namespace shardwright
