// SPDX-License-Identifier: Apache-2.0
#include "format/sibling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/survey.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sibling, SignsMatchTextAndNumbers) {
  EXPECT_TRUE(matches_sign("layer_03-model_00-model_states.pt", "layer_#-model_*model_states.pt"));
  EXPECT_FALSE(matches_sign("layer_xx-model_00-model_states.pt", "layer_#-model_*model_states.pt"));
  EXPECT_TRUE(matches_sign("abc", "*"));
  EXPECT_TRUE(matches_sign("", "*"));
  EXPECT_FALSE(matches_sign("iter_", "iter_#"));
  EXPECT_FALSE(matches_sign("iter_1x", "iter_#"));
}

struct Row {
  const char* format;
  std::vector<const char*> paths;
};

// One folder for each kind of the inventory, as its software leaves it.
std::vector<Row> inventory() {
  return {
      {"deepspeed", {"latest", "zero_to_fp32.py"}},
      {"deepspeed_stages", {"module-pipe_00-model_00-model_states.pt"}},
      {"deepspeed_moe",
       {"mp_rank_00_model_states.pt", "layer_0_expert_3_mp_rank_00_model_states.pt",
        "expp_rank_0_mp_rank_00_optim_states.pt"}},
      {"deepspeed_moe", {"expert_3_mp_rank_00_model_states.pt"}},
      {"nemo1", {"llama.nemo", "llama-unfinished"}},
      {"verl_fsdp", {"fsdp_config.json", "optim_world_size_8_rank_0.pt"}},
      {"mlite", {"training_state_rank_00000.pt"}},
      {"cornstarch", {"vision/module/pytorch_model-stage-00001-shard-00001.bin"}},
      {"cornstarch", {"module/a.bin", "projector/b.bin"}},
      {"peft", {"adapter_config.json"}},
      {"gradients", {"mp_rank_00.pth", "mp_rank_01.pth"}},
      {"fsdp_local", {"pytorch_model_fsdp_rank0.bin", "pytorch_model_fsdp_rank1.bin"}},
      {"fsdp_local", {"pytorch_model_fsdp_1_rank0.bin"}},
      {"legacy_rank", {"model_optim_rng.pt", "distrib_optim.pt"}},
      {"optimizer", {"distrib_optim.pt"}},
      {"optimizer", {"layer_wise_optimizer_0.pt"}},
      {"dataloader", {"train_dataloader_dprank000.pt"}},
      {"ms_swift", {"common.pt"}},
      {"ms_swift", {"latest_checkpointed_iteration.txt", "iter_0000010/common.pt"}},
      {"non_persistent", {"non_persistent/iter_0000001/a.pt"}},
      {"orbax", {"orbax.checkpoint", "pytree/_METADATA", "pytree/manifest.ocdbt"}},
      {"orbax", {"_CHECKPOINT_METADATA", "params/manifest.ocdbt"}},
      {"orbax", {"_METADATA", "d/0"}},
      {"orbax", {"manifest.ocdbt", "ocdbt.process_0/d/0"}},
      {"orbax", {"90/_CHECKPOINT_METADATA", "100/_CHECKPOINT_METADATA"}},
      {"tensorrt_llm", {"config.json", "rank0.engine", "rank1.engine"}},
      {"tensorrt_llm", {"config.json", "rank0.safetensors", "rank1.safetensors"}},
      {"vllm_sharded_state", {"config.json", "model-rank-0-part-0.safetensors"}},
      {"paddle", {"config.json", "model_state.pdparams"}},
      {"paddle", {"inference.pdmodel", "inference.pdiparams"}},
      {"paddle", {"optimizer.pdopt"}},
      {"gguf", {"llama-Q4_K_M-00001-of-00002.gguf", "README.md"}},
      {"onnx", {"model.onnx", "model.onnx_data"}},
      {"onnx", {"config.json", "onnx/model.onnx"}},
      {"local", {"0/iter_0000010_0_local.pt", "1/iter_0000010_1_local.pt"}},
      {"local", {"iter_0000010_3_local.pt"}},
      {"internevo", {"20/model_tp0_pp0.pt", "20/topo_tp0_pp0.json", "20/optimizer_tp0_pp0_zo0.pt"}},
      {"internevo", {"model_tp0_wp1_pp0.pt", "context.pt"}},
      {"internevo", {"model_tp0_pp0_zo3.pt"}},
      {"nanotron",
       {"latest.txt", "10/checkpoint_metadata.json", "10/model_config.json",
        "10/model/model/decoder/0/pp_block/attn/o_proj/"
        "model_weight_pp-rank-0-of-1_tp-rank-0-of-2.safetensors",
        "10/random/tp-0-of-1_dp-0-of-1_pp-0-of-1.pt"}},
      {"tf_or_flax", {"config.json", "flax_model-00001-of-00002.msgpack"}},
      {"tf_or_flax", {"config.json", "tf_model.h5"}},
  };
}

TEST(Sibling, EachOfTheInventoryIsRecognised) {
  for (const Row& row : inventory()) {
    MemoryDirectory directory;
    for (const char* path : row.paths) {
      const std::string_view name(path);
      const bool is_tag = name == "latest";
      const bool is_tracker = name == "latest_checkpointed_iteration.txt";
      const std::string tag =
          std::string(row.paths.back()).substr(0, std::string(row.paths.back()).find('/'));
      directory.put(path, is_tag ? tag : is_tracker ? "10" : "x");
    }
    const Detection detection = detect(directory).value();
    ASSERT_FALSE(detection.siblings.empty()) << row.format << ' ' << row.paths[0];
    const Sibling& sibling = *detection.siblings.front().sibling;
    EXPECT_EQ(sibling.format, row.format) << row.paths[0];
    EXPECT_NE(phrase(sibling.reader).english, phrase("none").english);
  }
}

TEST(Sibling, WhatWeReadIsNone) {
  const auto siblings = [](std::vector<DirectoryEntry> entries) {
    return recognise_siblings(entries).size();
  };
  EXPECT_EQ(
      siblings({{".metadata", false, 1}, {"__0_0.distcp", false, 1}, {"common.pt", false, 1}}), 0u);
  EXPECT_EQ(siblings({{"config.json", false, 1}, {"model.safetensors", false, 1}}), 0u);
  EXPECT_EQ(siblings({{"mp_rank_00", true, 0}, {"mp_rank_01", true, 0}}), 0u);
  // Of the right name but the wrong kind.
  EXPECT_EQ(siblings({{"model_optim_rng.pt", true, 0}, {"zero", false, 0}}), 0u);
}

TEST(Sibling, FilesAreRecognisedByName) {
  EXPECT_EQ(recognise_sibling_file("last.ckpt"), nullptr) << "a torch file, by Lightning";
  EXPECT_EQ(recognise_sibling_file("mp_rank_00.pth")->format, "gradients");
  EXPECT_EQ(recognise_sibling_file("llama-Q8_0.gguf")->format, "gguf");
  EXPECT_EQ(recognise_sibling_file("model.onnx")->format, "onnx");
  EXPECT_EQ(recognise_sibling_file("model_state.tp00.pdparams")->format, "paddle");
  EXPECT_EQ(recognise_sibling_file("inference.pdiparams")->format, "paddle");
  EXPECT_EQ(recognise_sibling_file("optimizer.pdopt")->format, "paddle");
  EXPECT_EQ(recognise_sibling_file("rank0.engine")->format, "tensorrt_llm");
  EXPECT_EQ(recognise_sibling_file("mp_rank_00_model_states.pt")->format, "deepspeed");
  EXPECT_EQ(recognise_sibling_file("tf_model.h5")->format, "tf_or_flax");
  EXPECT_EQ(recognise_sibling_file("model.safetensors"), nullptr);
}

// Models in folders that are named for their sizes: none of them is "the latest".
TEST(Sibling, NumbersAloneAreNoSteps) {
  MemoryDirectory directory;
  for (const char* path :
       {"7/config.json", "7/model.safetensors", "70/config.json", "70/model.safetensors"}) {
    directory.put(path, "x");
  }
  const Detection detection = detect(directory).value();
  EXPECT_TRUE(detection.candidates.empty());
  EXPECT_TRUE(detection.siblings.empty());
}

// Other tools' exports beside a model's own files, and files that only look like those.
TEST(Sibling, BesideAModelTheyAreNothing) {
  for (const std::vector<const char*>& paths : std::vector<std::vector<const char*>>{
           {"config.json", "model.safetensors", "model.gguf", "onnx/model.onnx"},
           {"rank0.safetensors", "rank1.safetensors"},
           {"config.json", "rank0.safetensors", "model.safetensors"},
           {"config.json", "model-rank-0-part-0.safetensors", "model.safetensors"},
           {"config.json", "model-rank-a-part-0.safetensors"},
           {"config.json", "rank0-of-2.safetensors"}}) {
    MemoryDirectory directory;
    for (const char* path : paths) directory.put(path, "x");
    const Detection detection = detect(directory).value();
    ASSERT_EQ(detection.candidates.size(), 1U) << paths.front();
    EXPECT_EQ(detection.candidates.front().format->name(), "hf");
  }
}

std::vector<std::string> writers_of(std::initializer_list<const char*> paths) {
  MemoryDirectory directory;
  for (const char* path : paths) directory.put(path, "x");
  std::vector<std::string> names;
  const Survey survey = survey_directory(directory, detect(directory).value()).value();
  for (const SiblingMatch& match : survey.writers)
    names.emplace_back(phrase(match.sibling->what).english);
  return names;
}

TEST(Sibling, WritersOfWhatWeReadAreNamed) {
  EXPECT_THAT(writers_of({"iter_0000010/.metadata", "iter_0000010/run_config.yaml"}),
              ElementsAre("Megatron-Bridge"));
  EXPECT_THAT(writers_of({"global_step_5/.metadata", "global_step_5/extra_state/e.pt"}),
              ElementsAre("VeOmni"));
  EXPECT_THAT(writers_of({"step_3/.metadata", "step_3/optimizer_rank_00000.pt"}),
              ElementsAre("MLite"));
  EXPECT_THAT(writers_of({"args.json", "model.safetensors", "iter_0000010/common.pt"}),
              ElementsAre("ms-swift"));
  EXPECT_THAT(writers_of({"global_step_5/actor/dist_ckpt/.metadata"}), ElementsAre("verl", "verl"));
  EXPECT_THAT(writers_of({"context/io.json", "weights/.metadata"}), ElementsAre("NeMo 2"));
  EXPECT_THAT(writers_of({"step_2/training_info.json", "step_2/policy/tokenizer/a",
                          "step_2/policy/weights/.metadata"}),
              ElementsAre("NeMo-RL"));
  EXPECT_THAT(writers_of({"latest-rank0.pt"}), ElementsAre("Composer (LLM-Foundry)"));
  EXPECT_THAT(writers_of({"ep1-ba20/.metadata", "ep0-ba10/.metadata"}),
              ElementsAre("Composer (LLM-Foundry)"));
  EXPECT_THAT(writers_of({"global_step_5/actor/dcp_checkpoint/.metadata"}),
              ElementsAre("verl", "RLinf"));
  EXPECT_THAT(writers_of({"step100/.metadata.json", "step100/model_and_optim/.metadata"}),
              ElementsAre("OLMo-core"));
  EXPECT_THAT(writers_of({"epoch-0_step-5/running_states.json", "epoch-0_step-5/modeling/a"}),
              ElementsAre("ColossalAI"));
  EXPECT_THAT(writers_of({"model.safetensors"}), IsEmpty());
}

TEST(Survey, NotesWhatLiesAbout) {
  const auto surveyed = [](std::initializer_list<const char*> paths) {
    MemoryDirectory directory;
    for (const char* path : paths) directory.put(path, "x");
    return survey_directory(directory, detect(directory).value()).value();
  };
  const Survey survey = surveyed(
      {"mp_rank_00/model_optim_rng.pt", "tmp/mp_rank_00/model_optim_rng.pt", "dones/0.done"});
  EXPECT_THAT(survey.leftovers, ElementsAre("dones", "tmp"));
  ASSERT_EQ(survey.ranks.size(), 1u);
  EXPECT_EQ(survey.ranks[0].entries[0].name, "model_optim_rng.pt");
  EXPECT_THAT(surveyed({"tmp/a", "iter_0000010/dones/a"}).leftovers,
              ElementsAre("tmp", "iter_0000010/dones"));
}

}  // namespace
}  // namespace shardwright
