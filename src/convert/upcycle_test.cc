// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "convert/golden.h"
#include "convert/saved_plan.h"
#include "convert/upcycle_spec.h"
#include "exec/plan_fingerprint.h"
#include "tensor/convert.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

constexpr const char* kLlama = "hf/llama3/hf";  // 3 layers, hidden 64, 96 columns

ConvertRequest upcycle_request(const std::string& input, const std::string& output,
                               std::string_view spec) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "torch_dist";
  if (!spec.empty()) request.upcycle = parse_upcycling(spec).value();
  return request;
}

TensorMap upcycled_tensors(const ConvertRequest& request) {
  const auto done = convert_now(request);
  EXPECT_TRUE(done) << done.error().text();
  return read_all_tensors(request.output).value();
}

// A bfloat16 tensor's numbers times `scale`, as torch multiplies: in float32, rounded once.
std::string times(const TensorBytes& tensor, float scale) {
  const auto count = static_cast<std::int64_t>(tensor.bytes.size() / 2);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  EXPECT_TRUE(convert_run({DType::kBF16, DType::kF32, 0.0}, count,
                          reinterpret_cast<const std::byte*>(tensor.bytes.data()), 2,
                          reinterpret_cast<std::byte*>(numbers.data()), 4));
  for (float& number : numbers) number *= scale;
  std::string bytes(tensor.bytes.size(), '\0');
  EXPECT_TRUE(convert_run({DType::kF32, DType::kBF16, 0.0}, count,
                          reinterpret_cast<const std::byte*>(numbers.data()), 4,
                          reinterpret_cast<std::byte*>(bytes.data()), 2));
  return bytes;
}

TEST(Upcycle, CutsTheMlpScalesItAndRepeatsIt) {
  const TemporaryFolder folder;
  const TensorMap dense =
      upcycled_tensors(upcycle_request(golden_path(kLlama), folder / "dense", ""));
  TensorMap made = upcycled_tensors(
      upcycle_request(golden_path(kLlama), folder / "moe", "experts=6,granularity=3,topk=3"));
  const std::string fc1 =
      times(dense.at("decoder.layers.mlp.linear_fc1.weight"), static_cast<float>(std::cbrt(3.0)));
  const std::string fc2 =
      times(dense.at("decoder.layers.mlp.linear_fc2.weight"), static_cast<float>(std::cbrt(3.0)));
  constexpr std::size_t kRow = 64 * 2;
  constexpr std::size_t kCut = 32;
  std::string experts1;
  std::string experts2;
  for (std::size_t layer = 0; layer < 3; ++layer) {
    for (std::size_t expert = 0; expert < 6; ++expert) {
      for (const std::size_t half : {0U, 96U}) {  // gates, and what they are for
        const std::size_t row = layer * 192 + half + expert % 3 * kCut;
        experts1 += fc1.substr(row * kRow, kCut * kRow);
      }
      for (std::size_t row = 0; row < 64; ++row) {
        experts2 += fc2.substr(((layer * 64 + row) * 96 + expert % 3 * kCut) * 2, kCut * 2);
      }
    }
  }
  const TensorBytes& first = made.at("decoder.layers.mlp.experts.experts.linear_fc1.weight");
  EXPECT_EQ(first.shape, (Dims{3, 6, 64, 64}));
  EXPECT_TRUE(first.bytes == experts1);
  const TensorBytes& second = made.at("decoder.layers.mlp.experts.experts.linear_fc2.weight");
  EXPECT_EQ(second.shape, (Dims{3, 6, 64, 32}));
  EXPECT_TRUE(second.bytes == experts2);
  EXPECT_TRUE(made.at("decoder.layers.pre_mlp_layernorm.weight").bytes ==
              dense.at("decoder.layers.mlp.linear_fc1.layer_norm_weight").bytes);
  const TensorBytes& router = made.at("decoder.layers.mlp.router.weight");
  EXPECT_EQ(router.shape, (Dims{3, 6, 64}));
  const auto row = [&](std::size_t at) { return router.bytes.substr(at * kRow, kRow); };
  for (std::size_t layer = 0; layer < 18; layer += 6) {
    for (const std::size_t at : {1U, 2U}) EXPECT_EQ(row(layer), row(layer + at));
    for (const std::size_t at : {4U, 5U}) EXPECT_EQ(row(layer + 3), row(layer + at));
    EXPECT_NE(row(layer), row(layer + 3));
    EXPECT_NE(row(layer), row((layer + 6) % 18));
  }
  for (const char* gone : {"experts.experts.linear_fc1.weight", "experts.experts.linear_fc2.weight",
                           "router.weight"}) {
    made.erase(std::string("decoder.layers.mlp.") + gone);
  }
  made.erase("decoder.layers.pre_mlp_layernorm.weight");
  TensorMap rest = dense;
  for (const char* gone :
       {"linear_fc1.weight", "linear_fc2.weight", "linear_fc1.layer_norm_weight"}) {
    rest.erase(std::string("decoder.layers.mlp.") + gone);
  }
  EXPECT_EQ(difference(made, rest), "");
}

TEST(Upcycle, WithoutAScaleIsACopy) {
  const TemporaryFolder folder;
  const ConvertRequest request =
      upcycle_request(golden_path(kLlama), folder / "moe", "experts=2,topk=1");
  EXPECT_TRUE(prepare_conversion(request).value().plan.weighted.empty());
  const TensorMap dense =
      upcycled_tensors(upcycle_request(golden_path(kLlama), folder / "dense", ""));
  const TensorMap moe = upcycled_tensors(request);
  const std::string& whole = dense.at("decoder.layers.mlp.linear_fc1.weight").bytes;
  const std::string& experts = moe.at("decoder.layers.mlp.experts.experts.linear_fc1.weight").bytes;
  const std::size_t layer = whole.size() / 3;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(experts.substr(i * layer, layer) == whole.substr(i / 2 * layer, layer)) << i;
  }
}

TEST(Upcycle, GivesTheSameFromEveryFormatAndLayout) {
  const TemporaryFolder folder;
  constexpr std::string_view kSpec = "experts=4,granularity=2,pre_softmax=true,topk=1,seed=9";
  const TensorMap direct =
      upcycled_tensors(upcycle_request(golden_path(kLlama), folder / "direct", kSpec));
  for (const char* format : {"torch_dist", "legacy"}) {
    ConvertRequest there =
        upcycle_request(golden_path(kLlama), folder / (std::string("dense ") + format), "");
    there.format = format;
    there.parallel.tensor = 2;
    ASSERT_TRUE(convert_now(there));
    for (const char* to : {"torch_dist", "legacy"}) {
      const std::string out = folder / (std::string(format) + " to " + to);
      ConvertRequest request = upcycle_request(there.output, out, kSpec);
      request.format = to;
      request.parallel.expert = 2;
      ASSERT_TRUE(convert_now(request));
      ConvertRequest back = upcycle_request(out, out + " again", "");
      EXPECT_EQ(difference(upcycled_tensors(back), direct), "") << out;
    }
  }
}

// Pieces of routers drawn otherwise are those of another conversion.
TEST(Upcycle, ResumesNoRoutersOfAnotherSeed) {
  const TemporaryFolder folder;
  const auto ids = [&](std::string_view spec) {
    const PreparedConversion prepared =
        prepare_conversion(upcycle_request(golden_path(kLlama), folder / "out", spec)).value();
    return std::pair(parts_id_of(save_plan(prepared).value()), fingerprint_of(prepared.plan));
  };
  const auto first = ids("experts=4,topk=2,seed=1");
  EXPECT_EQ(ids("experts=4,topk=2,seed=1"), first);
  const auto other = ids("experts=4,topk=2,seed=2");
  EXPECT_NE(other.first, first.first);
  EXPECT_NE(other.second, first.second);
}

TEST(Upcycle, SaysSoInArgumentsAndDocuments) {
  const TemporaryFolder folder;
  ASSERT_TRUE(convert_now(upcycle_request(golden_path(kLlama), folder / "dense", "")));
  const ConvertRequest request =
      upcycle_request(folder / "dense", folder / "moe", "experts=4,granularity=2,topk=3");
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(done->notes, testing::Contains(HasSubstr("becomes 4 experts of 48 columns")));
  EXPECT_THAT(done->notes, testing::Contains(HasSubstr("hf/config.json is left out")));
  const Checkpoint made = open_checkpoint(request.output).value();
  EXPECT_EQ(made.arguments.at("num_experts"), ArgValue{std::int64_t{4}});
  EXPECT_EQ(made.arguments.at("moe_ffn_hidden_size"), ArgValue{std::int64_t{48}});
  EXPECT_EQ(made.arguments.at("moe_router_topk"), ArgValue{std::int64_t{3}});
  EXPECT_EQ(made.arguments.at("moe_router_pre_softmax"), ArgValue{false});
  EXPECT_EQ(made.arguments.at("moe_grouped_gemm"), ArgValue{true});
  EXPECT_EQ(made.arguments.at("ffn_hidden_size"), ArgValue{std::int64_t{96}});
  EXPECT_THAT(made.run_config, HasSubstr("num_moe_experts: 4\n"));
  EXPECT_THAT(made.run_config, HasSubstr("moe_router_topk: 3\n"));
  EXPECT_TRUE(made.source_keys.empty());
  EXPECT_FALSE(made.directory->exists("hf/config.json"));
  for (const StoredObject& object : made.catalog.objects) {
    EXPECT_EQ(object.name.find("mlp.linear_fc"), std::string::npos) << object.name;
  }
}

TEST(Upcycle, RefusesWhatIsNoDenseModelOrDoesNotGoInto) {
  struct Refusal {
    std::string input;
    std::string spec;
    std::string format;
    Code code;
    std::string text;
  };
  const std::string llama = golden_path(kLlama);
  const Refusal cases[] = {
      {golden_path("hf/mixtral/hf"), "experts=4", "torch_dist", Code::kUsage,
       "has experts already"},
      {golden_path("hf/nemotron_h/hf"), "experts=4", "torch_dist", Code::kUsage, "several kinds"},
      {llama, "experts=5,granularity=5", "torch_dist", Code::kUsage, "does not divide the 96"},
      {llama, "experts=4,granularity=3", "torch_dist", Code::kUsage, "a multiple of granularity 3"},
      {llama, "experts=4,topk=5", "torch_dist", Code::kUsage, "found topk 5"},
      {llama, "experts=4", "hf", Code::kUsage, "does not apply to --to hf"},
  };
  const TemporaryFolder folder;
  for (const Refusal& one : cases) {
    ConvertRequest request = upcycle_request(one.input, folder / "no", one.spec);
    request.format = one.format;
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused) << one.text;
    EXPECT_EQ(refused.error().code, one.code) << one.text;
    EXPECT_THAT(refused.error().text(), HasSubstr(one.text));
  }
  ConvertRequest none = upcycle_request(llama, folder / "no", "experts=4");
  none.upcycle->granularity = 0;
  EXPECT_THAT(prepare_conversion(none).error().text(), HasSubstr("found 0, expected numbers"));
  ConvertRequest mean = upcycle_request(llama, folder / "no", "experts=4");
  mean.averaged = {llama};
  const auto refused = prepare_conversion(mean);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("average first"));
  // Of the two numbers that a scaled tensor has then the adapter would find one.
  ConvertRequest adapted = upcycle_request(llama, folder / "no", "experts=4");
  adapted.adapter = golden_path("peft");
  const auto apart = prepare_conversion(adapted);
  ASSERT_FALSE(apart);
  EXPECT_EQ(apart.error().code, Code::kUsage);
  EXPECT_THAT(apart.error().text(), HasSubstr("merge the adapter first"));
}

TEST(UpcycleSpec, SaysWhatIsWrongWithIt) {
  const Upcycling read = parse_upcycling("experts=8,granularity=2,pre_softmax=true,seed=0").value();
  EXPECT_EQ(
      std::tuple(read.experts, read.granularity, read.top_k, read.softmax_before_top, read.seed),
      std::tuple(8, 2, 2, true, 0));
  EXPECT_EQ(parse_upcycling("experts=1").value().top_k, 1);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "found '', expected experts=N"},
      {"8", "found '8', expected experts=N"},
      {"granularity=2", "experts=N is missing"},
      {"experts=0", "found '0' for experts, expected a whole number from 1"},
      {"experts=4097", "to 4096"},
      {"experts=4x", "found '4x' for experts"},
      {"experts=-4", "found '-4' for experts"},
      {"experts=4,", "found '', expected"},
      {"experts=4,experts=4", "found 'experts' twice"},
      {"experts=4,pre_softmax=1", "found '1' for pre_softmax, expected true or false"},
      {"experts=4,top=2", "found 'top=2', expected"},
  };
  for (const auto& [text, why] : cases) {
    const auto refused = parse_upcycling(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr(std::string(why)));
  }
}

}  // namespace
}  // namespace shardwright
