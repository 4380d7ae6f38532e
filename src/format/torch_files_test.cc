// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "format/formats.h"
#include "shardwright/checkpoint.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFile = "m/pytorch_model.bin";

std::string golden(const std::string& name) { return read_golden("torch_save/2.13.0/" + name); }

std::vector<std::string> names_in_file(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) names.push_back(tensor.desc.name);
  return names;
}

class TorchFiles : public ::testing::Test {
 protected:
  Error refused(const std::string& bytes) {
    place_.put(kFile, bytes);
    const auto opened = open_checkpoint(place_ / "m");
    if (opened) {
      ADD_FAILURE() << "opened";
      return {};
    }
    return opened.error();
  }

  TemporaryFolder place_;
};

TEST_F(TorchFiles, AreAModelWithItsConfig) {
  place_.put(kFile, golden("01_state_dict.pt"));
  place_.put("m/config.json", "{}");
  place_.put("m/training_args.bin", "x");
  const Checkpoint checkpoint = open_checkpoint(place_ / "m").value();
  EXPECT_EQ(checkpoint.location.format, "torch_files");
  EXPECT_TRUE(checkpoint.location.traits.is_hf_model);
  EXPECT_THAT(checkpoint.location.reasons,
              ElementsAre("pytorch_model.bin is a torch file of weights"));
  EXPECT_FALSE(checkpoint.catalog.tensors.empty());
  EXPECT_EQ(checkpoint.hf_config, "{}");
  ASSERT_EQ(checkpoint.artifacts.size(), 1U) << "training_args.bin is a pickle of its own";
}

TEST_F(TorchFiles, GivenByThemselvesGoByAnyName) {
  for (const char* name : {"model.pt", "weights.pth", "x.bin"}) {
    place_.put(name, golden("01_state_dict.pt"));
    EXPECT_EQ(open_checkpoint(place_ / name).value().location.format, "torch_files") << name;
  }
  place_.put("mp_rank_00/model.pt", golden("01_state_dict.pt"));
  EXPECT_EQ(open_checkpoint(place_ / "mp_rank_00/model.pt").error().code, Code::kUnsupportedFormat)
      << "one rank's part";
  for (const char* name : {"model_optim_rng.pt", "optimizer.pt", "training_args.bin", "common.pt",
                           "model_world_size_2_rank_0.pt", "rng_state_0.pth"}) {
    place_.put(name, golden("01_state_dict.pt"));
    EXPECT_EQ(open_checkpoint(place_ / name).error().code, Code::kUnknownFormat) << name;
  }
  for (const char* name : {"mp_rank_00.pth", "mp_rank_00_model_states.pt"}) {
    place_.put(name, golden("01_state_dict.pt"));
    EXPECT_EQ(open_checkpoint(place_ / name).error().code, Code::kUnsupportedFormat) << name;
  }
}

TEST_F(TorchFiles, ViewsAndTiedTensorsKeepTheirPlaces) {
  place_.put(kFile, golden("03_views_shared.pt"));
  const Checkpoint views = open_checkpoint(place_ / "m").value();
  const auto truth = nlohmann::json::parse(golden("03_views_shared.json"));
  ASSERT_EQ(views.catalog.tensors.size(), truth["__dict__"].size());
  for (const auto& pair : truth["__dict__"]) {
    const std::string name = pair[0];
    const auto found = std::ranges::find(views.catalog.tensors, name,
                                         [](const StoredTensor& t) { return t.desc.name; });
    ASSERT_NE(found, views.catalog.tensors.end()) << name;
    const nlohmann::json& expected = pair[1];
    ASSERT_EQ(found->desc.shape.size(), static_cast<int>(expected["shape"].size())) << name;
    for (int axis = 0; axis < found->desc.shape.size(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      EXPECT_EQ(found->desc.shape[axis], expected["shape"][at].get<std::int64_t>()) << name;
      const Dims& strides = found->chunks[0].strides;
      if (strides.empty() || found->desc.shape[axis] == 1) continue;
      EXPECT_EQ(strides[axis], expected["stride"][at].get<std::int64_t>()) << name;
    }
  }
  place_.put(kFile, golden("10_tied_and_repeated.pt"));
  EXPECT_TRUE(open_checkpoint(place_ / "m")) << "one storage, several names";
}

TEST_F(TorchFiles, WhatIsNoTensorIsLeftOutAndTold) {
  pickle::Document document;
  const pickle::Value dict = document.dict();
  document.set(dict, "w", make_torch_tensor(document, DType::kF32, {2}, "0"));
  document.set(dict, "epoch", document.integer(3));
  document.set_root(dict);
  const auto archive = [&] {
    const TorchLayout layout =
        TorchLayout::make(*pickle::encode(document, pickle::Protocol::kTwo), {{8}}).value();
    const std::string zeros(8, '\0');
    return layout.head() + zeros + layout.tail(std::array{0U});
  };
  place_.put(kFile, archive());
  const Checkpoint checkpoint = open_checkpoint(place_ / "m").value();
  EXPECT_THAT(names_in_file(checkpoint), ElementsAre("w"));
  EXPECT_THAT(checkpoint.notes,
              Contains("pytorch_model.bin: 1 are not tensors and are left out: epoch"));
  for (const char* key : {"state_dict", "model", "module", "model_state_dict"}) {
    const pickle::Value outer = document.dict();
    document.set(outer, key, dict);
    document.set_root(outer);
    place_.put(kFile, archive());
    EXPECT_THAT(names_in_file(open_checkpoint(place_ / "m").value()), ElementsAre("w")) << key;
    document.set(outer, "rng", make_torch_tensor(document, DType::kF32, {2}, "0"));
    place_.put(kFile, archive());
    const Checkpoint trained = open_checkpoint(place_ / "m").value();
    EXPECT_THAT(names_in_file(trained), ElementsAre("w")) << key;
    EXPECT_THAT(trained.notes, Contains(HasSubstr("rng"))) << key;
  }
  const pickle::Value rank = document.dict();
  document.set(rank, "model", dict);
  document.set(rank, "checkpoint_version", document.integer(3));
  document.set_root(rank);
  EXPECT_THAT(refused(archive()).message, HasSubstr("one rank's state of a Megatron run"));
  const pickle::Value nested = document.dict();
  document.set(nested, "more", dict);
  document.set(nested, "w", make_torch_tensor(document, DType::kF32, {2}, "0"));
  document.set_root(nested);
  EXPECT_THAT(refused(archive()).message, HasSubstr("'more' is a dict of tensors within"));
}

TEST_F(TorchFiles, WhatCannotBeReadIsNamed) {
  for (const char* name : {"11_sparse.pt", "12_quantized.pt", "42_meta_tensor.pt"}) {
    const Error error = refused(golden(name));
    EXPECT_EQ(error.code, Code::kTorchArchive) << name;
    EXPECT_THAT(error.message, HasSubstr("tensor ")) << name;
  }
  EXPECT_THAT(refused(golden("14_bare_tensor.pt")).message, HasSubstr("not a dict of tensors"));
  EXPECT_THAT(refused(golden("16_empty_dict.pt")).message, HasSubstr("no tensors in its dict"));
  EXPECT_FALSE(refused(golden("30_torchscript.pt")).message.empty());
  EXPECT_FALSE(refused("").message.empty());
  EXPECT_FALSE(refused(golden("01_state_dict.pt").substr(0, 400)).message.empty());
}

TEST_F(TorchFiles, TheIndexIsHeldAgainstTheFiles) {
  place_.put("m/pytorch_model-00001-of-00001.bin", golden("01_state_dict.pt"));
  const std::vector<std::string> names = names_in_file(open_checkpoint(place_ / "m").value());
  nlohmann::json map;
  for (const std::string& name : names) map[name] = "pytorch_model-00001-of-00001.bin";
  const auto index = [&](const nlohmann::json& weights) {
    place_.put("m/pytorch_model.bin.index.json", nlohmann::json{{"weight_map", weights}}.dump());
  };
  index(map);
  EXPECT_EQ(names_in_file(open_checkpoint(place_ / "m").value()), names);
  nlohmann::json more = map;
  more["ghost"] = "pytorch_model-00001-of-00001.bin";
  index(more);
  EXPECT_THAT(open_checkpoint(place_ / "m").error().message,
              HasSubstr("1 keys are not in the files it names: ghost"));
  map.erase(names[0]);
  index(map);
  EXPECT_THAT(open_checkpoint(place_ / "m").error().message,
              HasSubstr("1 keys of its files are not listed"));
}

TEST_F(TorchFiles, AWholeModelCountsBeforeAStaleIndex) {
  place_.put(kFile, golden("01_state_dict.pt"));
  place_.put("m/pytorch_model.bin.index.json",
             R"({"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}})");
  const Checkpoint whole = open_checkpoint(place_ / "m").value();
  EXPECT_THAT(whole.catalog.files, ElementsAre("pytorch_model.bin"));
  EXPECT_THAT(whole.notes, Contains(HasSubstr("index.json names files that are not there")));
  place_.put("m/pytorch_model-00001-of-00001.bin", golden("01_state_dict.pt"));
  EXPECT_EQ(open_checkpoint(place_ / "m").error().code, Code::kTwoCheckpoints);
}

TEST_F(TorchFiles, AFileOfLightningIsOne) {
  place_.put("runs/epoch=3-last.ckpt", golden("01_state_dict.pt"));
  const Checkpoint found = open_checkpoint(place_ / "runs/epoch=3-last.ckpt").value();
  EXPECT_EQ(found.location.format, "torch_files");
  // One rank's of NeMo is a part of a model.
  place_.put("mp_rank_00/model_weights.ckpt", golden("01_state_dict.pt"));
  const auto rank = open_checkpoint(place_ / "mp_rank_00/model_weights.ckpt");
  ASSERT_FALSE(rank);
  EXPECT_THAT(rank.error().message, HasSubstr("one rank's state"));
}

TEST_F(TorchFiles, ANameInTwoFilesIsRefused) {
  place_.put("m/pytorch_model-00001-of-00002.bin", golden("01_state_dict.pt"));
  place_.put("m/pytorch_model-00002-of-00002.bin", golden("01_state_dict.pt"));
  EXPECT_EQ(open_checkpoint(place_ / "m").error().code, Code::kDuplicateName);
}

TEST_F(TorchFiles, AcceleratesModelsAreReadOneByOne) {
  for (const std::string stem : {"pytorch_model", "pytorch_model_fsdp"}) {
    const std::string first = "m/" + stem + ".bin";
    const std::string second = "m/" + stem + "_1.bin";
    place_.put(first, golden("01_state_dict.pt"));
    place_.put("m/random_states_0.pkl", "x");
    const Checkpoint one = open_checkpoint(place_ / "m").value();
    EXPECT_EQ(one.location.format, "torch_files");
    EXPECT_THAT(one.artifacts, IsEmpty());
    place_.put(second, golden("01_state_dict.pt"));
    const Error two = open_checkpoint(place_ / "m").error();
    EXPECT_EQ(two.code, Code::kTwoCheckpoints);
    EXPECT_THAT(two.message, HasSubstr(stem + ".bin and " + stem + "_1.bin, which are two models"));
    EXPECT_TRUE(open_checkpoint(place_ / second));
    std::filesystem::remove(place_ / first);
    std::filesystem::remove(place_ / second);
  }
}

// Published models have both; safetensors count, as transformers has it.
TEST_F(TorchFiles, BesideSafetensorsCountWhenTheyAreNamed) {
  place_.put(kFile, golden("01_state_dict.pt"));
  place_.put("m/model.safetensors", read_golden("hf/llama3/hf/model.safetensors"));
  place_.put("m/config.json", "{}");
  EXPECT_EQ(open_checkpoint(place_ / "m").value().location.format, "hf");
  EXPECT_EQ(open_checkpoint(place_ / "m", {"torch_files"}).value().location.format, "torch_files");
}

}  // namespace
}  // namespace shardwright
