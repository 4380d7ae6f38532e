// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using ::testing::HasSubstr;

using Tensors = std::vector<std::pair<std::string, Dims>>;

// Payloads are zeros, or with a seed bytes that hang on it.
std::string archive_of(const TorchLayout& layout, const std::vector<std::uint64_t>& sizes,
                       unsigned seed) {
  std::string bytes = layout.head();
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::string payload(static_cast<std::size_t>(sizes[i]), '\0');
    for (std::size_t at = 0; at < payload.size(); ++at) {
      payload[at] = static_cast<char>(seed * (at + 1) % 127);
    }
    bytes += payload;
    crcs.push_back(crc32(as_bytes(payload)));
    if (i + 1 < sizes.size()) bytes += layout.between(i, crcs.back());
  }
  return bytes + layout.tail(crcs);
}

// A torch.save archive. `key` is where the state dict lies in it, empty for the root.
std::string rank_file(const Tensors& tensors, const std::string& key, unsigned seed = 0) {
  Document document;
  const Value dict = document.ordered_dict();
  std::vector<std::uint64_t> sizes;
  for (const auto& [name, shape] : tensors) {
    document.set(dict, name,
                 make_torch_tensor(document, DType::kF32, shape, std::to_string(sizes.size())));
    sizes.push_back(static_cast<std::uint64_t>(*element_count(shape) * 4));
  }
  const Value state = document.dict();
  if (!key.empty()) document.set(state, key, dict);
  document.set_root(key.empty() ? dict : state);
  const TorchLayout layout =
      TorchLayout::make(*pickle::encode(document, pickle::Protocol::kTwo), sizes).value();
  return archive_of(layout, sizes, seed);
}

Tensors stage(std::int64_t first, std::int64_t layers, bool is_last) {
  Tensors tensors;
  if (first == 0 && !is_last) tensors.push_back({"embedding.word_embeddings.weight", {8, 4}});
  for (std::int64_t layer = first; layer < first + layers; ++layer) {
    tensors.push_back(
        {"decoder.layers." + std::to_string(layer) + ".mlp.linear_fc2.weight", {4, 6}});
  }
  if (is_last) tensors.push_back({"decoder.final_layernorm.weight", {4}});
  return tensors;
}

TEST(LegacyReader, TellsWhatVersionsCallDifferently) {
  const auto told = [](const char* name) {
    const TemporaryFolder folder;
    folder.put("mp_rank_00/model_optim_rng.pt",
               rank_file({{"embedding.word_embeddings.weight", {8, 4}}, {name, {4, 6}}}, "model"));
    const auto opened = open_checkpoint(folder.path().string());
    EXPECT_TRUE(opened.has_value()) << opened.error().text();
    return opened->versioned_names;
  };
  const std::string end = ".mlp.linear_fc2.weight";
  EXPECT_EQ(told(("mtp.layers.0.transformer_layer" + end).c_str()).has_mtp_model_layer, false);
  EXPECT_EQ(told(("mtp.layers.0.mtp_model_layer" + end).c_str()).has_mtp_model_layer, true);
  EXPECT_EQ(told("decoder.layers.0.mlp.linear_fc2.weight").has_mtp_model_layer, std::nullopt);
  EXPECT_EQ(told("decoder.layers.0.mixer.conv1d.weight").has_plain_convolution, false);
  EXPECT_EQ(told("decoder.layers.0.mixer.conv1d_weight").has_plain_convolution, true);
  EXPECT_EQ(told("decoder.layers.0.mlp.linear_fc2.weight").has_plain_convolution, std::nullopt);
}

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    names.push_back(tensor.desc.name + " " + to_string(tensor.desc.shape) + " x" +
                    std::to_string(tensor.chunks.size()));
  }
  return names;
}

const std::vector<std::string> kThreeLayers = {"embedding.word_embeddings.weight (8, 4) x1",
                                               "decoder.layers.0.mlp.linear_fc2.weight (4, 6) x1",
                                               "decoder.layers.1.mlp.linear_fc2.weight (4, 6) x1",
                                               "decoder.layers.2.mlp.linear_fc2.weight (4, 6) x1",
                                               "decoder.final_layernorm.weight (4,) x1"};

TEST(LegacyReader, CountsLayersThroughTheStages) {
  const TemporaryFolder place;
  place.put("mp_rank_00_000/model_optim_rng.pt", rank_file(stage(0, 2, false), "model"));
  place.put("mp_rank_00_001/model_optim_rng.pt", rank_file(stage(0, 1, true), "model"));
  const auto checkpoint = open_checkpoint(place.path().string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(names_of(*checkpoint), kThreeLayers);
  EXPECT_FALSE(checkpoint->has_unread_optimizer);
}

// verl writes the state dict itself, into model.pt, and has numbered the layers through.
TEST(LegacyReader, TakesGlobalNumbersAsTheyAre) {
  const TemporaryFolder place;
  place.put("mp_rank_00_000/model.pt", rank_file(stage(0, 2, false), ""));
  place.put("mp_rank_00_001/model.pt", rank_file(stage(2, 1, true), ""));
  const auto checkpoint = open_checkpoint(place.path().string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(names_of(*checkpoint), kThreeLayers);
}

// Models from before Megatron-Core nest their dicts; the output of the last stage of a tied one is
// a copy of the embedding.
TEST(LegacyReader, ReadsModelsFromBeforeMegatronCore) {
  Document document;
  std::vector<std::uint64_t> sizes;
  const auto zeros = [&](const Dims& shape) {
    const std::string key = std::to_string(sizes.size());
    sizes.push_back(static_cast<std::uint64_t>(*element_count(shape) * 4));
    return make_torch_tensor(document, DType::kF32, shape, key);
  };
  const auto dict_of = [&](std::vector<std::pair<std::string, Value>> entries) {
    const Value dict = document.dict();
    for (const auto& [name, value] : entries) document.set(dict, name, value);
    return dict;
  };
  const Value encoder = dict_of({{"layers.0.attention.query_key_value.weight", zeros({12, 4})},
                                 {"layers.0.attention.dense.weight", zeros({4, 4})},
                                 {"final_layernorm.weight", zeros({4})}});
  const Value words = dict_of({{"word_embeddings", dict_of({{"weight", zeros({8, 4})}})}});
  const Value args = document.object(document.global("argparse", "Namespace"));
  document.set_attribute(args, "num_attention_heads", document.integer(2));
  document.set_root(dict_of(
      {{"args", args},
       {"model",
        dict_of({{"language_model", dict_of({{"embedding", words}, {"encoder", encoder}})}})}}));
  const TorchLayout layout =
      TorchLayout::make(*pickle::encode(document, pickle::Protocol::kTwo), sizes).value();
  const TemporaryFolder place;
  place.put("mp_rank_00/model_optim_rng.pt", archive_of(layout, sizes, 0));
  const auto checkpoint = open_checkpoint(place.path().string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(
      names_of(*checkpoint),
      (std::vector<std::string>{"embedding.word_embeddings.weight (8, 4) x1",
                                "decoder.layers.0.self_attention.linear_qkv.weight (12, 4) x6",
                                "decoder.layers.0.self_attention.linear_proj.weight (4, 4) x1",
                                "decoder.final_layernorm.weight (4,) x1"}));
}

// Files without arguments of a model with experts: how many tensor ranks share these out.
TEST(LegacyReader, FindsHowExpertsAreSharedOut) {
  const Tensors expert = {{"embedding.word_embeddings.weight", {8, 4}},
                          {"decoder.layers.0.mlp.router.weight", {1, 4}},
                          {"decoder.layers.0.mlp.experts.linear_fc2.weight0", {4, 6}},
                          {"decoder.final_layernorm.weight", {4}}};
  const auto shape_of_experts = [&](unsigned second_seed, const std::string& run_config) {
    const TemporaryFolder place;
    place.put("mp_rank_00/model_optim_rng.pt", rank_file(expert, "model", 3));
    place.put("mp_rank_01/model_optim_rng.pt", rank_file(expert, "model", second_seed));
    if (!run_config.empty()) place.put("run_config.yaml", run_config);
    const auto checkpoint = open_checkpoint(place.path().string());
    EXPECT_TRUE(checkpoint) << checkpoint.error().text();
    for (const StoredTensor& tensor : checkpoint->catalog.tensors) {
      if (tensor.desc.name.find(".experts.") != std::string::npos) return tensor.desc.shape;
    }
    return Dims();
  };
  EXPECT_EQ(shape_of_experts(5, ""), (Dims{1, 4, 12}));
  EXPECT_EQ(shape_of_experts(3, ""), (Dims{1, 4, 6})) << "the ranks hold the same";
  EXPECT_EQ(shape_of_experts(5, "model:\n  _target_: a.B\n  expert_tensor_parallel_size: 1\n"),
            (Dims{1, 4, 6}));
}

TEST(LegacyReader, NamesAFolderThatIsNotThere) {
  const TemporaryFolder place;
  const Tensors half = {{"decoder.layers.0.mlp.linear_fc2.weight", {4, 6}},
                        {"decoder.final_layernorm.weight", {4}}};
  place.put("mp_rank_00/model_optim_rng.pt", rank_file(half, "model"));
  place.put("mp_rank_02/model_optim_rng.pt", rank_file(half, "model"));
  const auto refused = open_checkpoint(place.path().string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kHole);
  EXPECT_THAT(refused.error().message, HasSubstr("missing mp_rank_01: tensor decoder.layers.0"));
}

// Without arguments only the numbers in the names tell that a stage is not there.
TEST(LegacyReader, MissesAWholeStage) {
  const TemporaryFolder place;
  place.put("mp_rank_00_000/model_optim_rng.pt", rank_file(stage(0, 2, false), "model"));
  place.put("mp_rank_00_002/model_optim_rng.pt", rank_file(stage(0, 1, true), "model"));
  const auto refused = open_checkpoint(place.path().string());
  ASSERT_FALSE(refused) << "layers of stage 2 would be taken for those of stage 1";
  EXPECT_EQ(refused.error().code, Code::kLegacyLayout);
  EXPECT_THAT(refused.error().message, HasSubstr("missing mp_rank_00_001: found files of 2"));
}

TEST(LegacyReader, MissesAVirtualStage) {
  const TemporaryFolder place;
  place.put("mp_rank_00_000/model_optim_rng.pt", rank_file(stage(0, 2, false), "model0"));
  Document document;
  const Value state = document.dict();
  document.set(state, "model0", document.ordered_dict());
  document.set(state, "model1", document.ordered_dict());
  document.set_root(state);
  place.put("mp_rank_00_001/model_optim_rng.pt",
            encode_torch_object(*pickle::encode(document, pickle::Protocol::kTwo)).value());
  const auto refused = open_checkpoint(place.path().string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLegacyLayout);
  EXPECT_THAT(refused.error().message, HasSubstr("found 2 virtual stages, expected 1 as in"));
}

TEST(LegacyReader, RefusesRanksThatContradictEachOther) {
  const TemporaryFolder place;
  place.put("mp_rank_00/model_optim_rng.pt", rank_file({{"a.norm.weight", {4}}}, "model"));
  place.put("mp_rank_01/model_optim_rng.pt", rank_file({{"a.norm.weight", {5}}}, "model"));
  const auto refused = open_checkpoint(place.path().string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kShapeMismatch);
  EXPECT_THAT(refused.error().message, HasSubstr("mp_rank_01/model_optim_rng.pt"));
}

TEST(LegacyReader, FindsNoModelAmongOptimizerFiles) {
  const TemporaryFolder place;
  place.put("mp_rank_00/distrib_optim.pt", "x");
  const auto refused = open_checkpoint(place.path().string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLegacyLayout);
}

}  // namespace
}  // namespace shardwright
