// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "codec/torch_item_reader.h"
#include "convert/golden.h"
#include "dcp/rank_metadata.h"
#include "format/fsdp_dtensor/fsdp_source.h"
#include "layout/fsdp_name.h"
#include "layout/mlite_layout.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

std::string target_fixture(std::string_view name) {
  return golden_path("dcp/" + std::string(name));
}

ConvertRequest dcp_request(const std::string& input, const std::string& output,
                           std::string_view format, std::int64_t shards = 1) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  request.shards = shards;
  return request;
}

DcpMetadata metadata_of(const std::string& path) {
  const auto directory = open_local_directory(path).value();
  return read_any_metadata(*directory, {.planner_paths = true}).value();
}

class DcpTarget : public testing::TestWithParam<std::tuple<const char*, std::int64_t>> {};

TEST_P(DcpTarget, HoldsTheSameAtAnyNumberOfShards) {
  const auto& [name, shards] = GetParam();
  const TemporaryFolder folder;
  const auto done =
      convert_now(dcp_request(target_fixture(name) + "/ckpt", folder / "out", "dcp", shards));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(difference(read_all_tensors(folder / "out").value(),
                       read_all_tensors(target_fixture(name)).value()),
            "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DcpTarget,
                         testing::Combine(testing::Values("fsdp2_uneven", "optimizer", "zstd_twice",
                                                          "rank_local", "hf_sharded"),
                                          testing::Values(1, 3, 16)));

TEST(DcpTargetMetadata, KeepsObjectsAndPlacesInTheStateDict) {
  const TemporaryFolder folder;
  const std::string source = target_fixture("optimizer") + "/ckpt";
  ASSERT_TRUE(convert_now(dcp_request(source, folder / "out", "dcp", 3)));
  const DcpMetadata before = metadata_of(source);
  const DcpMetadata after = metadata_of(folder / "out");
  ASSERT_FALSE(before.planner_paths.empty());
  std::map<std::string, std::vector<PathStep>> paths;
  for (const PlannerPath& path : after.planner_paths) paths[path.name] = path.path;
  EXPECT_EQ(paths.size(), before.planner_paths.size());
  for (const PlannerPath& path : before.planner_paths) EXPECT_EQ(paths[path.name], path.path);
  EXPECT_EQ(after.catalog.objects.size(), before.catalog.objects.size());
  EXPECT_FALSE(after.catalog.objects.empty());
}

// Chunks of FSDP2: the last one short, one empty item behind the end for all ranks without rows.
TEST(DcpTargetMetadata, CutsAsTorchChunkDoes) {
  const TemporaryFolder folder;
  ConvertRequest request =
      dcp_request(target_fixture("strided_rows7") + "/ckpt", folder / "out", "dcp", 6);
  request.include = {"rows7"};
  ASSERT_TRUE(convert_now(request));
  const Catalog catalog = metadata_of(folder / "out").catalog;
  ASSERT_EQ(catalog.tensors.size(), 1U);
  std::vector<std::int64_t> origins;
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < catalog.tensors[0].chunks.size(); ++i) {
    origins.push_back(catalog.tensors[0].chunks.box(i).origin[0]);
    rows.push_back(catalog.tensors[0].chunks.box(i).shape[0]);
  }
  EXPECT_THAT(origins, testing::ElementsAre(0, 2, 4, 6, 7));
  EXPECT_THAT(rows, testing::ElementsAre(2, 2, 2, 1, 0));
  const Chunk empty = catalog.tensors[0].chunks[4];
  const auto file = open_local_directory(folder / "out").value()->open(catalog.files[empty.file]);
  ASSERT_TRUE(file) << file.error().text();
  TensorItemReader reader(**file);
  const auto item = reader.read(empty.range);
  ASSERT_TRUE(item) << item.error().text();
  EXPECT_EQ(item->shape, (Dims{0, 3}));
}

std::string saved_by_mlite(std::string_view name) {
  return target_fixture(name) + (name == "mlite_sound" ? "" : "/step_3");
}

std::string truth_of_mlite(std::string_view name) {
  return target_fixture(name == "mlite_sound" ? "mlite_sound_truth" : name);
}

// What MLite saved, against the weights that the run had.
TensorMap mlite_truth(std::string_view name) {
  TensorMap truth;
  const TensorMap stored = read_all_tensors(truth_of_mlite(name)).value();
  for (const auto& [key, tensor] : stored) {
    if (key.starts_with("full.")) truth["model." + key.substr(5)] = tensor;
    if (!key.starts_with("expert.")) continue;
    const std::size_t layer = key.find('.', 7);
    const std::size_t expert = key.find('.', layer + 1);
    truth["model.layers." + key.substr(7, layer - 7) + ".mlp.experts" + key.substr(expert) +
          ".weight" + key.substr(layer + 1, expert - layer - 1)] = tensor;
  }
  return truth;
}

class Mlite : public testing::TestWithParam<const char*> {};

TEST_P(Mlite, GetsGlobalExpertsAndRowsInOrder) {
  const TemporaryFolder folder;
  const TensorMap truth = mlite_truth(GetParam());
  EXPECT_EQ(truth.size(), 28U);
  for (const std::string_view format : {"dcp", "safetensors"}) {
    ConvertRequest request = dcp_request(saved_by_mlite(GetParam()), folder / "out", format, 3);
    request.overwrite = true;
    const auto done = convert_now(request);
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_EQ(difference(read_all_tensors(folder / "out").value(), truth), "");
  }
}

// What is written is read again, however many data ranks share it out.
TEST(MliteShards, NeedNotBeEven) {
  const TemporaryFolder folder;
  const TensorMap truth = mlite_truth("mlite_sound");
  for (const std::int64_t shards : {1, 3, 4, 16}) {
    const std::string out = folder / std::to_string(shards);
    ASSERT_TRUE(convert_now(dcp_request(saved_by_mlite("mlite_sound"), out, "dcp", shards)));
    const auto again = convert_now(dcp_request(out, out + "-again", "dcp", 5));
    ASSERT_TRUE(again) << shards << ": " << again.error().text();
    EXPECT_EQ(difference(read_all_tensors(out + "-again").value(), truth), "") << shards;
  }
}

TEST(DcpTarget, SaysWhichChoicesChangeNothing) {
  const TemporaryFolder folder;
  ConvertRequest request =
      dcp_request(saved_by_mlite("mlite_sound"), folder / "out", "safetensors", 1);
  const auto told = [&](const ConvertRequest& one) {
    const auto prepared = prepare_conversion(one);
    EXPECT_TRUE(prepared) << prepared.error().text();
    return prepared ? prepared->notes : std::vector<std::string>();
  };
  EXPECT_THAT(told(request), Not(Contains(HasSubstr("no use is made"))));
  request.family = "qwen3";
  request.hf_config_dir = folder / "";
  EXPECT_THAT(told(request),
              Contains("no use is made of --family, --hf-config: --to safetensors keeps the names "
                       "that are stored"));
}

// What MLite's ranks keep to themselves, beside a golden checkpoint.
class MliteRankFiles : public testing::Test {
 protected:
  MliteRankFiles() {
    fs::copy(saved_by_mlite("mlite_sound"), folder_ / "in", fs::copy_options::recursive);
    for (const char rank : {'0', '1', '2', '3'}) {
      folder_.put(std::string("in/optimizer_rank_") + rank + ".pt", std::string("state ") + rank);
      folder_.put(std::string("in/rng_state_rank_0000") + rank + ".pt", std::string("rng ") + rank);
    }
  }

  // What is told of a conversion into a new folder.
  std::string notes(ConvertRequest request) {
    request.output = folder_ / ("out" + std::to_string(++outputs_));
    const auto done = convert_now(request);
    EXPECT_TRUE(done) << done.error().text();
    std::string text;
    for (const std::string& note : done ? done->notes : std::vector<std::string>()) {
      text += note + "\n";
    }
    return text;
  }

  [[nodiscard]] bool is_there(const std::string& name) const {
    return fs::exists(folder_ / ("out" + std::to_string(outputs_) + "/" + name));
  }
  [[nodiscard]] ConvertRequest request(std::string_view format, std::int64_t shards) const {
    return dcp_request(folder_ / "in", "", format, shards);
  }

  TemporaryFolder folder_;
  int outputs_ = 0;
};

TEST_F(MliteRankFiles, GoAlongToAsManyRanks) {
  EXPECT_THAT(notes(request("dcp", 4)),
              HasSubstr("rng_state_rank_00003.pt go along as they are: only a job of 4 ranks"));
  for (const char rank : {'0', '1', '2', '3'}) {
    const std::string out = folder_ / ("out1/optimizer_rank_" + std::string(1, rank) + ".pt");
    EXPECT_EQ(read_file(out), std::string("state ") + rank);
    EXPECT_TRUE(is_there(std::string("rng_state_rank_0000") + rank + ".pt"));
  }
}

TEST_F(MliteRankFiles, StayBehindElsewhere) {
  EXPECT_THAT(notes(request("dcp", 1)),
              HasSubstr("they belong to 4 ranks, and the output to 1; --shards 4 takes them"));
  EXPECT_FALSE(is_there("optimizer_rank_0.pt"));
  EXPECT_THAT(notes(request("safetensors", 4)), HasSubstr("holds tensors only"));
  ConvertRequest other = request("dcp", 4);
  other.optimizer = OptimizerPolicy::kDrop;
  EXPECT_THAT(notes(other), HasSubstr("stay behind: --optimizer drop"));
  EXPECT_FALSE(is_there("rng_state_rank_00000.pt"));
  other = request("dcp", 4);
  other.dtype = DType::kF16;
  EXPECT_THAT(notes(other), HasSubstr("--dtype makes another model"));
  EXPECT_FALSE(is_there("optimizer_rank_0.pt"));
  other = request("dcp", 4);
  other.exclude = {"*norm*"};
  EXPECT_THAT(notes(other), HasSubstr("--dtype makes another model"));
}

TEST_F(MliteRankFiles, AreRefusedWhereOneIsMissing) {
  fs::remove(folder_ / "in/optimizer_rank_2.pt");
  ConvertRequest request = dcp_request(folder_ / "in", folder_ / "out", "dcp", 4);
  const auto done = convert_now(request);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kLossySource);
  EXPECT_THAT(done.error().message, HasSubstr("rank 2 has none"));
  request.optimizer = OptimizerPolicy::kDrop;
  EXPECT_TRUE(convert_now(request));
  // One that begins behind what the others have: as many as ranks, and yet one has none.
  fs::rename(folder_ / "in/optimizer_rank_0.pt", folder_ / "in/optimizer_rank_2.pt");
  request.optimizer = OptimizerPolicy::kDefault;
  request.output = folder_ / "again";
  EXPECT_FALSE(convert_now(request));
}

TEST_F(MliteRankFiles, ThatRunCodeAreRefused) {
  std::string pickle = "cposix\nsystem\n(S'true'\ntR.";
  folder_.put("in/optimizer_rank_1.pt", pickle);
  const auto done = convert_now(dcp_request(folder_ / "in", folder_ / "out", "dcp", 4));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("optimizer_rank_1.pt"));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Mlite, testing::Values("mlite_sound", "mlite_ep2_etp2_tp2"));

MliteLayout layout_of(std::string_view name) {
  const std::string path =
      name == "mlite_lost_experts" ? target_fixture(name) : saved_by_mlite(name);
  return read_mlite_layout(metadata_of(path).catalog).value();
}

TEST(MliteLayout, IsReadOffTheShapes) {
  const MliteLayout even = layout_of("mlite_sound");
  EXPECT_EQ(std::tuple(even.expert, even.expert_tensor, even.expert_data, even.tensor, even.data),
            std::tuple(2, 1, 2, 1, 4));
  const MliteLayout tensor = layout_of("mlite_ep2_etp2_tp2");
  EXPECT_EQ(std::tuple(tensor.expert, tensor.expert_tensor, tensor.expert_data, tensor.tensor,
                       tensor.data),
            std::tuple(2, 2, 1, 2, 2));
  EXPECT_EQ(even.loss, MliteLoss::kNone);
  EXPECT_EQ(layout_of("mlite_lost_experts").loss, MliteLoss::kExperts);
  EXPECT_EQ(layout_of("mlite_lost_rows").loss, MliteLoss::kRows);
}

TEST(MliteLayout, AsksWhereItIsToldOtherwise) {
  const Catalog catalog = metadata_of(target_fixture("mlite_sound")).catalog;
  const auto layout = read_mlite_layout(catalog, {4, std::nullopt, std::nullopt});
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, Code::kUsage);
  EXPECT_THAT(layout.error().message, HasSubstr("--source-ep"));
}

// Sizes of a source that nothing asks for would be believed to have counted.
TEST(MliteSizes, AreRefusedOfOtherCheckpoints) {
  const TemporaryFolder out;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/legacy_tp2pp2ep1");
  request.output = out / "x";
  request.format = "dcp";
  request.source_expert = 2;
  for (const char* format : {"dcp", "hf", "torch_dist"}) {
    request.format = format;
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused) << format;
    EXPECT_EQ(refused.error().code, Code::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("this is none that was saved with such sizes"))
        << format;
  }
}

// Names and shapes of a real file of Megatron-FSDP, TP 2 x DP 2.
TEST(FsdpName, OfOneOptimizerOrOfAChain) {
  for (const char* name : {"optimizer.state.module.module.module.w.exp_avg_sq",
                           "optimizer.12.state.module.module.module.w.exp_avg_sq"}) {
    const auto split = split_fsdp_name(name);
    ASSERT_TRUE(split) << name;
    EXPECT_EQ(split->role, FsdpName::Role::kExpAvgSq);
    EXPECT_EQ(split->parameter, "w");
    EXPECT_EQ(join_fsdp_name(*split), "optimizer.state.module.module.module.w.exp_avg_sq");
  }
  const auto entry = split_fsdp_group_entry("optimizer.0.param_to_group_meta.module.a.w.lr");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parameter, "a.w");
  EXPECT_EQ(entry->key, "lr");
  EXPECT_EQ(join_fsdp_group_entry("w", 3, "lr"),
            "optimizer.param_to_group_meta.module.module.module.w.lr");
  for (const char* name :
       {"optimizer.x.state.module.w.exp_avg", "optimizer.0state.module.w.exp_avg",
        "optimizer.0.0.state.module.w.exp_avg", "optimizer.state.module.w.lr"}) {
    EXPECT_FALSE(split_fsdp_name(name)) << name;
  }
}

// Two optimizers in a chain: their states become those of one model.
TEST(FsdpSource, PutsAChainOfOptimizersTogether) {
  Catalog catalog;
  for (const char* name :
       {"model.module.a", "model.module.b", "optimizer.0.state.module.module.module.a.exp_avg",
        "optimizer.1.state.module.module.module.b.exp_avg"}) {
    catalog.tensors.push_back({{name, DType::kF32, {2}}, ChunkList(1), Encoding::kRaw});
  }
  std::vector<std::string> notes;
  const auto names = [&](const Catalog& canonical) {
    std::vector<std::string> found;
    for (const StoredTensor& tensor : canonical.tensors) found.push_back(tensor.desc.name);
    return found;
  };
  const auto canonical = canonical_from_fsdp(catalog, {}, notes);
  ASSERT_TRUE(canonical) << canonical.error().text();
  EXPECT_THAT(names(*canonical), testing::UnorderedElementsAre(
                                     "a", "b", "optimizer.state.param.a", "optimizer.state.param.b",
                                     "optimizer.state.exp_avg.a", "optimizer.state.exp_avg.b"));
  catalog.tensors[3].desc.name = "optimizer.1.state.module.module.module.a.exp_avg";
  const auto twice = canonical_from_fsdp(catalog, {}, notes);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::kDuplicateName);
}

// A router's bias and frozen weights have no state: nothing was ever trained from a main weight.
TEST(FsdpSource, MakesMainWeightsOfWhatIsTrained) {
  Catalog catalog;
  for (const char* name : {"model.module.a", "model.module.decoder.layers.0.mlp.router.expert_bias",
                           "optimizer.state.module.module.module.a.exp_avg"}) {
    catalog.tensors.push_back({{name, DType::kF32, {2}}, ChunkList(1), Encoding::kRaw});
  }
  std::vector<std::string> notes;
  const auto canonical = canonical_from_fsdp(catalog, {}, notes);
  ASSERT_TRUE(canonical) << canonical.error().text();
  std::vector<std::string> names;
  for (const StoredTensor& tensor : canonical->tensors) names.push_back(tensor.desc.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("a", "optimizer.state.param.a",
                                                   "optimizer.state.exp_avg.a",
                                                   "decoder.layers.0.mlp.router.expert_bias"));
}

TEST(FsdpSource, RefusesHalvesOfStackedLayers) {
  Catalog catalog;
  for (const char* half : {"_w", "_v"}) {
    const std::string name = "model.module.decoder.layers.mlp.linear_fc1.weight";
    catalog.tensors.push_back(
        {{name + half, DType::kF32, {4, 3, 2}}, ChunkList(3), Encoding::kRaw});
  }
  std::vector<std::string> notes;
  const auto refused = canonical_from_fsdp(catalog, {}, notes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(refused.error().message, HasSubstr("pieces that have all layers in one"));
}

TEST(FsdpSource, RefusesExpertsWithGaps) {
  for (const char* number : {"1", "9223372036854775807"}) {
    Catalog catalog;
    StoredTensor& tensor = catalog.tensors.emplace_back();
    tensor.desc = {
        std::string("model.module.decoder.layers.0.mlp.experts.linear_fc2.weight") + number,
        DType::kF32,
        {2, 2}};
    tensor.chunks = ChunkList(2);
    std::vector<std::string> notes;
    const auto refused = canonical_from_fsdp(catalog, {}, notes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUnmatchedSource) << refused.error().message;
    EXPECT_THAT(refused.error().message, testing::HasSubstr("from 0 to " + std::string(number)));
  }
}

TEST(FsdpSource, BecomesTheCanonicalTensors) {
  const TemporaryFolder folder;
  fs::copy(golden_path("metadata/mcore_0.16.1_fsdp_dtensor.metadata"), folder / ".metadata");
  Catalog catalog = metadata_of(folder.path().string()).catalog;
  for (StoredTensor& tensor : catalog.tensors) tensor.encoding = Encoding::kRaw;
  std::vector<std::string> notes;
  const auto canonical = canonical_from_fsdp(catalog, {}, notes);
  ASSERT_TRUE(canonical) << canonical.error().text();
  std::map<std::string, Dims> shapes;
  for (const StoredTensor& tensor : canonical->tensors) {
    shapes[tensor.desc.name] = tensor.desc.shape;
    const Status coverage = check_coverage(tensor, Replicas::kForbidden);
    EXPECT_TRUE(coverage) << coverage.error().text();
  }
  EXPECT_EQ(shapes.size(), 4U * (3 + 4 * 6));
  EXPECT_EQ(shapes["decoder.layers.3.mlp.linear_fc1.weight"], (Dims{192, 64}));
  EXPECT_EQ(shapes["optimizer.state.exp_avg_sq.decoder.layers.0.mlp.linear_fc1.weight"],
            (Dims{192, 64}));
  EXPECT_EQ(shapes["optimizer.state.param.output_layer.weight"], (Dims{512, 64}));

  Catalog half = catalog;
  std::erase_if(half.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name == "model.module.decoder.layers.2.mlp.linear_fc1.weight_v";
  });
  const auto incomplete = canonical_from_fsdp(half, {}, notes);
  ASSERT_FALSE(incomplete);
  EXPECT_THAT(
      incomplete.error().message,
      HasSubstr(
          "decoder.layers.2.mlp.linear_fc1.weight: found 1 of its pieces, expected _w and _v"));

  const Arguments staged = {{"pipeline_model_parallel_size", ArgValue{std::int64_t{2}}},
                            {"num_layers", ArgValue{std::int64_t{8}}}};
  EXPECT_FALSE(canonical_from_fsdp(catalog, staged, notes));
  const Arguments disjoint = {{"pipeline_model_parallel_size", ArgValue{std::int64_t{2}}},
                              {"num_layers", ArgValue{std::int64_t{4}}}};
  EXPECT_TRUE(canonical_from_fsdp(catalog, disjoint, notes));
}

std::vector<std::string> model_names(const Result<Catalog>& canonical) {
  std::vector<std::string> names;
  if (!canonical) return {canonical.error().message};
  for (const StoredTensor& tensor : canonical->tensors) {
    if (!is_optimizer_name(tensor.desc.name)) names.push_back(tensor.desc.name);
  }
  return names;
}

Catalog catalog_of(const std::vector<std::pair<std::string, Dims>>& tensors) {
  Catalog catalog;
  for (const auto& [name, shape] : tensors) {
    catalog.tensors.push_back(
        {{"model.module." + name, DType::kF32, shape}, ChunkList(shape.size()), Encoding::kRaw});
  }
  return catalog;
}

const Arguments kAlone = {{"tensor_model_parallel_size", ArgValue{std::int64_t{1}}}};

// What a version stores under its modules' names, another stores as torch_dist does.
TEST(FsdpSource, HasOneNameForWhatVersionsCallDifferently) {
  const std::string layer = "decoder.layers.0.self_attention.";
  std::vector<std::string> notes;
  for (const char* inner : {"mtp_model_layer", "transformer_layer"}) {
    const Catalog catalog =
        catalog_of({{std::string("mtp.layers.0.") + inner + ".mlp.linear_fc2.weight", {2, 2}}});
    EXPECT_THAT(model_names(canonical_from_fsdp(catalog, {}, notes)),
                testing::ElementsAre("mtp.layers.0.transformer_layer.mlp.linear_fc2.weight"));
  }
  const Catalog fused = catalog_of({{layer + "linear_qkv_down_proj.weight", {5, 4}},
                                    {layer + "linear_qkv_down_proj.layer_norm_weight", {4}},
                                    {layer + "linear_q_up_proj.weight", {8, 3}}});
  const Catalog apart = catalog_of({{layer + "linear_q_down_proj.weight", {3, 4}},
                                    {layer + "linear_kv_down_proj.weight", {2, 4}},
                                    {"decoder.layers.0.input_layernorm.weight", {4}},
                                    {layer + "linear_q_up_proj.weight", {8, 3}}});
  EXPECT_EQ(model_names(canonical_from_fsdp(fused, kAlone, notes)),
            model_names(canonical_from_fsdp(apart, kAlone, notes)));
  std::vector<std::pair<std::string, Dims>> parts = {{layer + "A_log", {2}},
                                                     {layer + "out_proj.weight", {4, 6}}};
  std::vector<std::string> expected = {layer + "A_log", layer + "out_proj.weight"};
  const Catalog whole = catalog_of({parts[0], parts[1], {layer + "in_proj.weight", {24, 4}}});
  for (const auto& [part, rows] :
       {std::pair("query", 4), std::pair("key", 4), std::pair("value", 6), std::pair("z", 6),
        std::pair("beta", 2), std::pair("alpha", 2)}) {
    expected.push_back(layer + "in_proj.weight." + part);
    parts.push_back({expected.back(), {rows, 4}});
  }
  EXPECT_EQ(model_names(canonical_from_fsdp(whole, kAlone, notes)), expected);
  EXPECT_EQ(model_names(canonical_from_fsdp(catalog_of(parts), {}, notes)), expected);
  const auto unknown = canonical_from_fsdp(whole, {}, notes);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(unknown.error().message, HasSubstr(layer + "in_proj.weight"));
  parts.push_back({layer + "in_proj.weight", {24, 4}});
  const auto twice = canonical_from_fsdp(catalog_of(parts), kAlone, notes);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::kDuplicateName);
}

// Settings keep the modules' names where states have those of torch_dist.
TEST(FsdpName, HasSettingsUnderAnyNameOfTheParameter) {
  const std::string root = "optimizer.param_to_group_meta.module.module.module.";
  const auto settings = [](const std::string& parameter) {
    return fsdp_settings_of(split_fsdp_parameter(parameter));
  };
  EXPECT_EQ(settings("mtp.layers.0.mtp_model_layer.mlp.linear_fc2.weight"),
            settings("mtp.layers.0.transformer_layer.mlp.linear_fc2.weight"));
  EXPECT_EQ(settings("a.self_attention.in_proj.weight.query"),
            settings("a.self_attention.in_proj.weight"));
  EXPECT_EQ(settings("a.mlp.experts.local_experts.1.linear_fc1.weight"),
            settings("a.mlp.experts.linear_fc1.weight1"));
  EXPECT_THAT(settings("a.self_attention.linear_qkv_down_proj.weight"),
              testing::ElementsAre(root + "a.self_attention.linear_q_down_proj.weight",
                                   root + "a.self_attention.linear_kv_down_proj.weight"));
  EXPECT_EQ(settings("a.self_attention.linear_qkv_down_proj.layer_norm_weight"),
            settings("a.input_layernorm.weight"));
}

class FsdpTarget : public testing::TestWithParam<const char*> {};

TEST_P(FsdpTarget, GoesToMegatronAndHuggingFaceAndBack) {
  const std::string golden = golden_path(std::string("hf/") + GetParam());
  const TemporaryFolder folder;
  const auto made = convert_now(dcp_request(golden + "/hf", folder / "fsdp", "fsdp_dtensor", 3));
  ASSERT_TRUE(made) << made.error().text();
  ConvertRequest to_hf = dcp_request(folder / "fsdp", folder / "hf", "hf");
  to_hf.dtype = DType::kBF16;
  const auto back = convert_now(to_hf);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(
      difference(read_all_tensors(folder / "hf").value(), read_all_tensors(golden + "/hf").value()),
      "");
  ConvertRequest to_mcore = dcp_request(folder / "fsdp", folder / "mcore", "torch_dist");
  to_mcore.dtype = DType::kBF16;
  ASSERT_TRUE(convert_now(to_mcore));
  EXPECT_EQ(
      difference(read_all_tensors(folder / "mcore").value(), read_all_tensors(golden).value()), "");
  ConvertRequest to_legacy = dcp_request(folder / "fsdp", folder / "legacy", "legacy");
  EXPECT_TRUE(convert_now(to_legacy));
}

INSTANTIATE_TEST_SUITE_P(Families, FsdpTarget,
                         testing::Values("llama3", "qwen3", "qwen3_moe", "deepseek_v3"));

// Optimizer states, settings and steps survive the way through fsdp_dtensor.
TEST(FsdpTargetState, KeepsTheOptimizer) {
  const std::string source = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const TemporaryFolder folder;
  ASSERT_TRUE(convert_now(dcp_request(source, folder / "a", "fsdp_dtensor", 2)));
  const auto made = convert_now(dcp_request(folder / "a", folder / "b", "torch_dist"));
  ASSERT_TRUE(made) << made.error().text();
  const TensorMap before = read_all_tensors(source).value();
  const TensorMap after = read_all_tensors(folder / "b").value();
  std::size_t compared = 0;
  for (const auto& [name, tensor] : before) {
    if (!name.starts_with("optimizer.state.")) continue;
    EXPECT_EQ(after.at(name).bytes, tensor.bytes) << name;
    ++compared;
  }
  EXPECT_GT(compared, 20U);
  ASSERT_TRUE(convert_now(dcp_request(folder / "b", folder / "c", "fsdp_dtensor", 2)));
  EXPECT_EQ(
      difference(read_all_tensors(folder / "c").value(), read_all_tensors(folder / "a").value()),
      "");
}

TEST(FsdpTargetState, RefusesHalfAMixer) {
  const TemporaryFolder folder;
  ASSERT_TRUE(
      convert_now(dcp_request(golden_path("hf/nemotron_h/hf"), folder / "dist", "torch_dist")));
  ConvertRequest request = dcp_request(folder / "dist", folder / "out", "fsdp_dtensor");
  const auto whole = convert_now(request);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_THAT(whole->notes, testing::Contains(HasSubstr("as 1 tensor-parallel ranks have them")));
  EXPECT_THAT(
      whole->notes,
      testing::Contains(HasSubstr("convolutions of Mamba mixers are called conv1d.weight")));
  const Checkpoint written = open_checkpoint(folder / "out").value();
  EXPECT_THAT(written.catalog.tensors,
              testing::Contains(
                  testing::ResultOf([](const StoredTensor& tensor) { return tensor.desc.name; },
                                    testing::EndsWith("mixer.in_proj.weight"))));
  request.output = folder / "half";
  request.exclude = {"*mixer.in_proj.weight.B"};
  const auto made = convert_now(request);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("its part .B is missing"));
}

// As Megatron-LM stores prediction layers after 0.19; the modules' own name is another.
TEST(FsdpTargetState, KeepsTheNamesThatTheSourceShows) {
  const TemporaryFolder folder;
  const auto has = [&](const char* output, std::string_view part) {
    const Checkpoint written = open_checkpoint(folder / output).value();
    return std::ranges::any_of(written.catalog.tensors, [&](const StoredTensor& tensor) {
      return tensor.desc.name.contains(part);
    });
  };
  const auto made =
      convert_now(dcp_request(golden_path("hf/deepseek_v3_mtp/hf"), folder / "in", "fsdp_dtensor"));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_THAT(made->notes, testing::Contains(HasSubstr("others look for transformer_layer")));
  EXPECT_TRUE(has("in", ".mtp_model_layer."));
  edit_metadata(folder / "in/iter_0000000", [](Catalog& catalog) {
    for (StoredTensor& tensor : catalog.tensors) {
      replace_first(tensor.desc.name, ".mtp_model_layer.", ".transformer_layer.");
    }
  });
  ASSERT_TRUE(convert_now(dcp_request(folder / "in", folder / "out", "fsdp_dtensor")));
  EXPECT_TRUE(has("out", ".transformer_layer."));
  EXPECT_FALSE(has("out", ".mtp_model_layer."));
}

TEST(FsdpTargetState, TakesAPartOfAModelApartAsTheWhole) {
  const TemporaryFolder folder;
  ASSERT_TRUE(
      convert_now(dcp_request(golden_path("hf/nemotron_h/hf"), folder / "in", "fsdp_dtensor")));
  edit_metadata(folder / "in/iter_0000000", [](Catalog& catalog) {
    catalog.tensors.back().desc.name = "unheard";  // which is not asked for
  });
  ConvertRequest request = dcp_request(folder / "in", folder / "out", "torch_dist");
  request.include = {"*.0.mixer.in_proj.weight"};
  const auto made = convert_now(request);
  ASSERT_TRUE(made) << made.error().text();
  const TensorMap written = read_all_tensors(folder / "out").value();
  EXPECT_EQ(written.size(), 5U);
  for (const auto& [name, tensor] : written) {
    EXPECT_THAT(name, HasSubstr("mixer.in_proj.weight."));
  }
}

TEST(FsdpTargetState, RefusesRowsOfAMixerWithoutTheRunsSizes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(
      convert_now(dcp_request(golden_path("hf/nemotron_h/hf"), folder / "in", "fsdp_dtensor")));
  edit_metadata(folder / "in/iter_0000000", [](Catalog& catalog) {
    std::erase_if(catalog.objects, [](const StoredObject& each) { return each.name == "args"; });
  });
  for (const char* format : {"torch_dist", "fsdp_dtensor", "legacy"}) {
    const auto refused = convert_now(dcp_request(folder / "in", folder / "out", format));
    ASSERT_FALSE(refused) << format;
    EXPECT_EQ(refused.error().code, Code::kUnsupportedFormat) << refused.error().text();
    EXPECT_THAT(refused.error().message, HasSubstr("save that has its entry args"));
  }
}

TEST(FsdpTargetState, RefusesPipelineStages) {
  const TemporaryFolder folder;
  ConvertRequest request = dcp_request(golden_path("hf/llama3/hf"), folder / "out", "fsdp_dtensor");
  request.parallel.pipeline = 2;
  const auto made = convert_now(request);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUsage);
}

}  // namespace
}  // namespace shardwright
