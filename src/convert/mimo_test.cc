// SPDX-License-Identifier: Apache-2.0
// MIMO checkpoints, against what Megatron-Bridge's converter made of the same models.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "codec/json_text.h"
#include "codec/safetensors_dtype.h"
#include "convert/golden.h"
#include "format/select.h"
#include "layout/component_spec.h"
#include "model/component_names.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"
#include "testing/tensor_records.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const std::string kVision = "vision_model.";
const std::string kVisionRoot = "modality_submodules.images.encoders.qwen_visual.";

ConvertRequest to_mimo(const std::string& input, const std::string& output,
                       const std::vector<std::string>& components,
                       std::optional<std::int64_t> world = std::nullopt) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "mimo";
  request.components = parse_components(components).value();
  request.world_size = world;
  return request;
}

ConvertRequest to_hf(const std::string& input, const std::string& output) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "hf";
  return request;
}

void expect_same(const TensorMap& got, const TensorMap& expected) {
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name).dtype, tensor.dtype) << name;
    EXPECT_EQ(got.at(name).shape, tensor.shape) << name;
    EXPECT_TRUE(got.at(name).bytes == tensor.bytes) << name;
  }
  EXPECT_EQ(got.size(), expected.size());
}

// The global tensors of a MIMO model are those of the ordinary one under other names.
void expect_components_of(const TensorMap& got, const std::string& golden) {
  const auto records = read_tensor_records(golden + "/megatron_global.json");
  for (const auto& [name, record] : records) {
    const bool is_vision = name.starts_with(kVision);
    const std::string expected = is_vision ? kVisionRoot + name.substr(kVision.size()) : name;
    ASSERT_TRUE(got.contains(expected)) << expected;
    EXPECT_EQ(safetensors_name(got.at(expected).dtype), record.dtype);
    EXPECT_EQ(content_digest(got.at(expected).bytes), record.digest) << expected;
  }
  EXPECT_EQ(got.size(), records.size());
}

struct Layout {
  std::string name;
  std::string family;
  std::vector<std::string> components;
  std::optional<std::int64_t> world;
};

class MimoLayouts : public testing::TestWithParam<Layout> {};

// To a layout, from there to another one in a directory that has been moved, and back without a
// flag.
TEST_P(MimoLayouts, HoldTheModelAndGiveItBack) {
  const std::string golden = golden_path("hf/" + GetParam().family);
  const TemporaryFolder out;
  const auto first =
      convert_now(to_mimo(golden + "/hf", out / "first", GetParam().components, GetParam().world));
  ASSERT_TRUE(first) << first.error().text();
  expect_components_of(read_all_tensors(out / "first").value(), golden);

  std::filesystem::rename(out / "first", out / "moved");
  const auto second =
      convert_now(to_mimo(out / "moved", out / "second", {"images=tp=2", "language=tp=1,pp=2"}));
  ASSERT_TRUE(second) << second.error().text();
  expect_components_of(read_all_tensors(out / "second").value(), golden);

  for (const char* from : {"moved", "second"}) {
    const auto back = convert_now(to_hf(out / from, out / (std::string(from) + "-hf")));
    ASSERT_TRUE(back) << back.error().text();
    expect_same(read_all_tensors(out / (std::string(from) + "-hf")).value(),
                read_all_tensors(golden + "/hf").value());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, MimoLayouts,
    testing::Values(Layout{"tp2_tp1", "qwen35_vl", {"language=tp=2", "images=tp=1"}, 3},
                    Layout{"images_first", "qwen35_vl", {"images=tp=1", "language=tp=1,dp=1"}, 2},
                    Layout{"pp2_dp2", "qwen35_vl", {"language=pp=2,dp=2", "images=dp=2"}, {}},
                    Layout{"encoder_pp2", "qwen35_vl", {"language=pp=2", "images=tp=2,pp=2"}, {}},
                    Layout{"cp2", "qwen35_vl", {"language=tp=2,cp=2", "images=tp=2"}, 8},
                    Layout{"deepstack", "qwen3_vl", {"language=tp=2,pp=3", "images=tp=2"}, {}}),
    [](const auto& test) { return test.param.name; });

// Of the chunks of one tensor: file, origin and shape.
using Places =
    std::vector<std::tuple<std::string, std::vector<std::int64_t>, std::vector<std::int64_t>>>;

std::map<std::string, Places> places_in(const Catalog& catalog) {
  std::map<std::string, Places> places;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      places[tensor.desc.name].emplace_back(
          catalog.files[chunk.file], std::vector(chunk.box.origin.begin(), chunk.box.origin.end()),
          std::vector(chunk.box.shape.begin(), chunk.box.shape.end()));
    }
    std::ranges::sort(places[tensor.desc.name]);
  }
  return places;
}

// Every chunk in the file of the rank that Megatron lets write it.
TEST(MimoChunks, LieWhereTheReferenceHasThem) {
  const TemporaryFolder out;
  const std::string golden = golden_path("hf/qwen35_vl/hf");
  ASSERT_TRUE(convert_now(to_mimo(
      golden, out / "x", {"language=tp=2,dp=1,rank_offset=0", "images=tp=1,dp=1,rank_offset=2"})));
  const auto places = places_in(open_checkpoint(out / "x").value().catalog);
  const nlohmann::json expected =
      parse_json(read_golden("mimo/chunks_w3_tp2_tp1.json"), "chunks").value();
  std::size_t compared = 0;
  for (const auto& [name, chunks] : expected.items()) {
    if (chunks[0].contains("object")) continue;
    Places theirs;
    for (const nlohmann::json& chunk : chunks) {
      theirs.emplace_back(chunk["file"], chunk["offsets"].get<std::vector<std::int64_t>>(),
                          chunk["sizes"].get<std::vector<std::int64_t>>());
    }
    std::ranges::sort(theirs);
    ASSERT_TRUE(places.contains(name)) << name;
    EXPECT_EQ(places.at(name), theirs) << name;
    ++compared;
  }
  EXPECT_EQ(compared, places.size());
  EXPECT_GT(compared, 80U);
}

TEST(MimoComponents, AreThoseOfTheFamily) {
  const TemporaryFolder out;
  const auto refusal = [&](const std::string& golden, const std::vector<std::string>& components) {
    const auto refused = prepare_conversion(to_mimo(golden_path(golden), out / "x", components));
    return refused ? std::string("accepted") : refused.error().text();
  };
  const std::string family = "hf/qwen35_vl/hf";
  EXPECT_THAT(refusal(family, {"language=tp=1", "vision=tp=1"}),
              HasSubstr("--component vision: qwen3_5_vl has no such component; it has"));
  EXPECT_THAT(refusal(family, {"language=tp=1"}), HasSubstr("give images=tp=N too"));
  EXPECT_THAT(refusal(family, {"images=tp=1"}), HasSubstr("the component 'language' is missing"));
  EXPECT_THAT(refusal("hf/qwen3/hf", {"language=tp=1"}),
              HasSubstr("family qwen3 is not multimodal"));
  EXPECT_THAT(refusal(family, {"language=tp=8", "images=tp=1"}), HasSubstr("SW04"));
  EXPECT_FALSE(std::filesystem::exists(out / "x"));
}

// A Gemma 4 may be without audio, though its family has it.
TEST(MimoComponents, AreThoseThatTheSourceHas) {
  const TemporaryFolder out;
  ConvertRequest ordinary = to_hf(golden_path("hf/qwen3_vl/hf"), out / "ordinary");
  ordinary.format = "torch_dist";
  ASSERT_TRUE(convert_now(ordinary));
  ConvertRequest request = to_mimo(out / "ordinary", out / "x", {"language=tp=1", "images=tp=1"});
  request.exclude = {"vision_model.*"};
  const auto refused = prepare_conversion(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_THAT(refused.error().message,
              HasSubstr("--component images: the source has no tensors of it; leave it out"));
  const std::vector<std::string> language = {"language=tp=1"};
  request.components = parse_components(language).value();
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_EQ(converted->components.size(), 1U);
}

TEST(MimoOptimizer, IsNotMadeOfNothing) {
  const TemporaryFolder out;
  ConvertRequest ordinary = to_hf(golden_path("hf/qwen3_vl/hf"), out / "ordinary");
  ordinary.format = "torch_dist";
  ASSERT_TRUE(convert_now(ordinary));
  ConvertRequest request = to_mimo(out / "ordinary", out / "x", {"language=tp=1", "images=tp=1"});
  EXPECT_FALSE(keeps_optimizer(request));
  request.optimizer = OptimizerPolicy::kKeep;
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  const Catalog catalog = open_checkpoint(out / "x").value().catalog;
  for (const StoredObject& object : catalog.objects) {
    EXPECT_FALSE(object.name.starts_with("mimo.")) << object.name;
  }
  for (const StoredTensor& tensor : catalog.tensors) {
    EXPECT_EQ(tensor.desc.name.find("module."), std::string::npos) << tensor.desc.name;
  }
}

// Ordinary Megatron directories both ways.
TEST(MimoModels, ComeFromOrdinaryOnesAndBecomeThem) {
  const TemporaryFolder out;
  const std::string golden = golden_path("hf/qwen3_vl");
  ConvertRequest ordinary = to_hf(golden + "/hf", out / "ordinary");
  ordinary.format = "torch_dist";
  ordinary.parallel = {2, 1, 1, 1, 2};
  ASSERT_TRUE(convert_now(ordinary));
  const auto mimo =
      convert_now(to_mimo(out / "ordinary", out / "mimo", {"language=tp=4", "images=tp=1"}));
  ASSERT_TRUE(mimo) << mimo.error().text();
  expect_components_of(read_all_tensors(out / "mimo").value(), golden);
  ordinary.input = out / "mimo";
  ordinary.output = out / "again";
  const auto again = convert_now(ordinary);
  ASSERT_TRUE(again) << again.error().text();
  expect_same(read_all_tensors(out / "again").value(), read_all_tensors(out / "ordinary").value());
}

// DeepSeek's layer for multi-token prediction has copies of the embedding and the head beside it.
TEST(PredictionLayers, AreDroppedByNameAndForgottenInTheConfig) {
  const TemporaryFolder out;
  const std::string golden = golden_path("hf/deepseek_v3_mtp/hf");
  ConvertRequest request = to_hf(golden, out / "megatron");
  request.format = "torch_dist";
  request.mtp = MtpPolicy::kDrop;
  const auto dropped = convert_now(request);
  ASSERT_TRUE(dropped) << dropped.error().text();
  const TensorMap original = read_all_tensors(golden).value();
  TensorMap expected = original;
  std::erase_if(expected,
                [](const auto& entry) { return entry.first.starts_with("model.layers.3."); });
  const std::size_t count = original.size() - expected.size();
  ASSERT_GT(count, 10U);
  EXPECT_THAT(dropped->notes,
              testing::Contains(testing::AllOf(
                  HasSubstr(std::to_string(count) + " tensors of prediction layers are dropped"),
                  HasSubstr("model.layers.3.eh_proj.weight"),
                  HasSubstr("model.layers.3.embed_tokens.weight"))));
  EXPECT_EQ(open_checkpoint(out / "megatron").value().arguments.at("mtp_num_layers"),
            ArgValue{std::monostate()});

  const auto back = convert_now(to_hf(out / "megatron", out / "hf"));
  ASSERT_TRUE(back) << back.error().text();
  expect_same(read_all_tensors(out / "hf").value(), expected);
  const nlohmann::json config =
      parse_json(read_file(out / "hf/config.json"), "config.json").value();
  EXPECT_EQ(config["num_nextn_predict_layers"], 0);
  EXPECT_THAT(back->notes, testing::Contains(HasSubstr("num_nextn_predict_layers becomes 0")));
}

TEST(PredictionLayers, NeedAFamilyToBeDropped) {
  const TemporaryFolder out;
  for (const std::string_view format : {"hf", "safetensors"}) {
    ConvertRequest request = to_hf(golden_path("hf/deepseek_v3_mtp/hf"), out / "x");
    request.format = format;
    request.mtp = MtpPolicy::kDrop;
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("--mtp drop"));
  }
}

// As Megatron-Bridge's trainer leaves a folder: no config.json, no common.pt. Families whose towers
// are Hugging Face's own modules have components in the same places.
TEST(MimoSource, FamilyIsTheOneThatArgumentsAndTensorsFit) {
  const std::string golden = golden_path("hf/qwen35_vl/hf");
  const TemporaryFolder folder;
  const std::vector<std::string> layout = {"language=tp=2", "images=tp=1,dp=2"};
  const auto made = convert_now(to_mimo(golden, folder / "in", layout));
  ASSERT_TRUE(made) << made.error().text();
  for (const std::string ours : {"hf", "common.pt", "components.json"}) {
    ASSERT_GT(std::filesystem::remove_all(folder / ("in/iter_0000000/" + ours)), 0U) << ours;
  }
  const auto back = convert_now(to_hf(folder / "in", folder / "hf"));
  ASSERT_TRUE(back) << back.error().text();
  expect_same(read_all_tensors(folder / "hf").value(), read_all_tensors(golden).value());
  ASSERT_TRUE(std::filesystem::remove(folder / "in/iter_0000000/run_config.yaml"));
  const auto untold = convert_now(to_hf(folder / "in", folder / "untold"));
  ASSERT_FALSE(untold);
  EXPECT_EQ(untold.error().code, Code::kAmbiguousFamily);
  EXPECT_THAT(untold.error().message, HasSubstr("--family"));
}

StoredTensor named(std::string name) {
  StoredTensor tensor;
  tensor.desc = {std::move(name), DType::kBF16, {1}};
  return tensor;
}

TEST(MimoSource, NamesLoseTheirWrappers) {
  EXPECT_EQ(without_wrappers("language_model.module.module.decoder.x"), "language_model.decoder.x");
  EXPECT_EQ(without_wrappers("modality_submodules.images.module.encoders.a.module.x"),
            "modality_submodules.images.encoders.a.module.x")
      << "what lies inside the component is its own";
  EXPECT_EQ(without_wrappers("rng_state.language/shard_0"), "rng_state.language/shard_0");

  Mapping family;
  family.components = {{"language", "language_model.", "language_model."},
                       {"images", kVision, kVisionRoot}};
  Catalog catalog;
  catalog.tensors = {
      named("language_model.module.output_layer.weight"),
      named("modality_submodules.images.module.encoders.qwen_visual.pos_embed.weight"),
      named("mimo.language.optimizer.state.exp_avg.language_model.module.x")};
  ASSERT_TRUE(has_component_names(catalog));
  const Wrappers wrappers = to_standard_names(family.components, catalog).value();
  EXPECT_EQ(with_wrappers(wrappers, "language_model.x"), "language_model.module.x");
  EXPECT_EQ(with_wrappers(wrappers, kVisionRoot + "x"),
            "modality_submodules.images.module.encoders.qwen_visual.x");
  EXPECT_EQ(with_wrappers(wrappers, "hf_extra.x"), "hf_extra.x");
  EXPECT_EQ(catalog.tensors[0].desc.name, "language_model.output_layer.weight");
  EXPECT_EQ(catalog.tensors[1].desc.name, "vision_model.pos_embed.weight");
  EXPECT_EQ(catalog.tensors[2].desc.name, "optimizer.state.exp_avg.language_model.x");

  catalog.tensors = {named("modality_submodules.audio.encoders.whisper.x")};
  EXPECT_EQ(families_with_routes(std::span(&family, 1), "", catalog).error().code, Code::kNoFamily);
  EXPECT_EQ(to_standard_names(family.components, catalog).error().code, Code::kNoFamily);
  catalog.tensors = {named("language_model.module.x"), named("language_model.x")};
  EXPECT_EQ(to_standard_names(family.components, catalog).error().code, Code::kDuplicateName);
  catalog.tensors = {named("language_model.module.x"), named("language_model.y")};
  EXPECT_EQ(to_standard_names(family.components, catalog).error().code, Code::kMetadataCorrupt);
  catalog.tensors = {named("language_model.x"),
                     named("mimo.images.optimizer.state.exp_avg.language_model.x")};
  EXPECT_THAT(to_standard_names(family.components, catalog).error().message,
              HasSubstr("found the state of a tensor of language in the optimizer of images"));
}

// Two families whose projections lie in one place, and encoders in places of their own.
TEST(MimoSource, RoutesAreThoseOfOneFamily) {
  const std::string projection = "modality_submodules.images.input_projections.0.";
  std::vector<Mapping> families(2);
  for (const std::size_t i : {0U, 1U}) {
    const std::string name(1, static_cast<char>('a' + i));
    families[i].family = name;
    families[i].components = {
        {"language", "language_model.", "language_model."},
        {"images", name + "_vision.", "modality_submodules.images.encoders." + name + "."},
        {"images", name + "_projection.", projection}};
  }
  for (const char* name : {"a", "b"}) {
    Catalog catalog;
    catalog.tensors = {named("language_model.x"), named(projection + "x"),
                       named(fmt::format("modality_submodules.images.encoders.{}.x", name))};
    const auto fitting = families_with_routes(families, "", catalog).value();
    ASSERT_THAT(fitting, SizeIs(1));
    ASSERT_TRUE(to_standard_names(fitting[0]->components, catalog));
    EXPECT_EQ(catalog.tensors[1].desc.name, fmt::format("{}_projection.x", name));
    EXPECT_EQ(catalog.tensors[2].desc.name, fmt::format("{}_vision.x", name));
  }
  Catalog either;
  either.tensors = {named(projection + "x")};
  EXPECT_THAT(families_with_routes(families, "", either).value(), SizeIs(2));
  const auto named_one = families_with_routes(families, "b", either).value();
  ASSERT_THAT(named_one, SizeIs(1));
  ASSERT_TRUE(to_standard_names(named_one[0]->components, either));
  EXPECT_EQ(either.tensors[0].desc.name, "b_projection.x");
  Catalog mixed;
  mixed.tensors = {named("modality_submodules.images.encoders.a.x"),
                   named("modality_submodules.images.encoders.b.y")};
  const auto refused = families_with_routes(families, "", mixed);
  EXPECT_EQ(refused.error().code, Code::kNoFamily);
  EXPECT_THAT(refused.error().message, HasSubstr("encoders.b.y: no family has this component"));
}

}  // namespace
}  // namespace shardwright
