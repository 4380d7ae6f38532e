// SPDX-License-Identifier: Apache-2.0
#include "format/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "format/refused_format.h"
#include "format/targets.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Files = std::vector<std::pair<const char*, const char*>>;

constexpr const char* kTorchDist = R"({"sharded_backend": "torch_dist"})";
constexpr const char* kFsdp = R"({"sharded_backend": "fsdp_dtensor"})";
constexpr const char* kTracker = "latest_checkpointed_iteration.txt";

void put(const Files& files, MemoryDirectory& directory) {
  for (const auto& [path, contents] : files) directory.put(path, contents);
}

Detection detected(const Files& files, std::string_view format = {}) {
  MemoryDirectory directory;
  put(files, directory);
  return detect(directory, format).value();
}

// `legacy in iter_0000010`, best first.
std::vector<std::string> found(const Files& files, std::string_view format = {}) {
  std::vector<std::string> texts;
  for (const Candidate& candidate : detected(files, format).candidates) {
    texts.push_back(std::string(candidate.format->name()) +
                    (candidate.folder.empty() ? "" : " in " + candidate.folder));
  }
  return texts;
}

TEST(Formats, HaveDifferentNamesThatAreFound) {
  std::set<std::string_view> names;
  for (const SourceFormat* format : source_formats()) {
    EXPECT_TRUE(names.insert(format->name()).second) << format->name();
    EXPECT_EQ(find_source_format(format->name()), format);
    EXPECT_FALSE(format->shown_container().empty()) << format->name();
  }
  EXPECT_EQ(names.size(), format_names().size());
  EXPECT_EQ(find_source_format("zip"), nullptr);
}

// What the steps behind the reading rely on.
TEST(Formats, HaveTraitsThatAgree) {
  for (const SourceFormat* format : source_formats()) {
    SCOPED_TRACE(format->name());
    const SourceTraits traits = format->traits();
    EXPECT_LE(traits.is_hf_model + traits.is_of_ranks, 1);
    EXPECT_LE(traits.has_chunk_list + traits.is_of_ranks, 1);
    EXPECT_FALSE(traits.is_named_by_family && !traits.is_hf_model);
    EXPECT_LE(traits.needs_common_state + traits.is_of_ranks, 1);
    EXPECT_FALSE(traits.is_hf_model && !traits.has_chunk_list && traits.records == Records::kItems);
    const std::string_view target = format->usual_target();
    const Phrase summary = format->summary();
    EXPECT_EQ(summary.english.empty(), target.empty());
    EXPECT_EQ(summary.chinese.empty(), target.empty());
    if (!target.empty()) {
      EXPECT_TRUE(find_target(target)) << target;
    }
  }
}

TEST(Formats, AnUnknownNameGetsAHint) {
  EXPECT_TRUE(check_format_name({}));
  EXPECT_TRUE(check_format_name({"mlite"}));
  const Status unknown = check_format_name({"torch-dist", "--other-as"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUsage);
  EXPECT_THAT(unknown.error().message, HasSubstr("--other-as 'torch-dist': no such format"));
  EXPECT_THAT(unknown.error().message, HasSubstr("did you mean torch_dist?"));
}

TEST(Detect, EachFormatIsKnownByWhatLiesThere) {
  EXPECT_THAT(found({{"model.safetensors", "x"}}), ElementsAre("hf"));
  EXPECT_THAT(found({{"model.safetensors.index.json", "{}"}}), ElementsAre("hf"));
  EXPECT_THAT(found({{"mp_rank_00/model_optim_rng.pt", "x"}}), ElementsAre("legacy"));
  EXPECT_THAT(found({{".metadata", "x"}}), ElementsAre("dcp"));
  EXPECT_THAT(found({{"__0.metadata", "x"}, {"__1.metadata", "x"}}), ElementsAre("dcp"));
  EXPECT_THAT(found({{".metadata", "x"}, {"metadata.json", kTorchDist}}),
              ElementsAre("torch_dist"));
  EXPECT_THAT(found({{".metadata", "x"}, {"metadata.json", kFsdp}}), ElementsAre("fsdp_dtensor"));
  EXPECT_THAT(found({{"metadata.json", R"({"sharded_backend": "zarr"})"}}), ElementsAre("zarr"));
  EXPECT_THAT(found({{"decoder.weight/.zarray", "x"}}), ElementsAre("zarr"));
  EXPECT_THAT(found({{"a._extra_state/shard_0_1.pt", "x"}, {"b.weight/.zarray", "x"}}),
              ElementsAre("zarr"));
  EXPECT_THAT(found({{"model_world_size_2_rank_1.pt", "x"}}), ElementsAre("fsdp_ranks"));
  EXPECT_THAT(found({{"consolidated.00.pth", "x"}}), ElementsAre("consolidated"));
  EXPECT_THAT(found({{"adapter_model.safetensors", "x"}}), IsEmpty());
  EXPECT_THAT(found({{"model_world_size_x_rank_1.pt", "x"}}), IsEmpty());
  EXPECT_THAT(found({}), IsEmpty());
}

TEST(Detect, TrainersFoldersAreFollowed) {
  EXPECT_THAT(found({{"global_step_5/actor/model_world_size_1_rank_0.pt", "x"},
                     {"global_step_5/actor/huggingface/config.json", "{}"}}),
              ElementsAre("fsdp_ranks in global_step_5/actor"));
  EXPECT_THAT(found({{"global_step_5/policy/model_world_size_1_rank_0.pt", "x"}}),
              ElementsAre("fsdp_ranks in global_step_5/policy"));
  EXPECT_THAT(found({{"checkpoint/step-9/.metadata", "x"}, {"checkpoint/step-10/.metadata", "x"}}),
              ElementsAre("dcp in checkpoint/step-10"));
  EXPECT_THAT(found({{"checkpoint-7/pytorch_model_fsdp_0/.metadata", "x"}}),
              ElementsAre("dcp in checkpoint-7/pytorch_model_fsdp_0"));
  // prime-rl's.
  EXPECT_THAT(found({{"checkpoints/step_5/trainer/.metadata", "x"}}),
              ElementsAre("dcp in checkpoints/step_5/trainer"));
  // mcore_adapter's.
  EXPECT_THAT(found({{"iter_0000001/dist_model/.metadata", "x"},
                     {"iter_0000001/dist_optimizer/.metadata", "x"}}),
              ElementsAre("dcp in iter_0000001/dist_model"));
  // NeMo Automodel's and NeMo-RL's.
  EXPECT_THAT(found({{"epoch_0_step_9/model/shard-00001-model-00001-of-00001.safetensors", "x"},
                     {"epoch_1_step_10/model/shard-00001-model-00001-of-00001.safetensors", "x"},
                     {"epoch_1_step_10/optim/.metadata", "x"}}),
              ElementsAre("hf in epoch_1_step_10/model"));
  for (const char* beside :
       {"step_3/policy/optimizer/.metadata", "step_3/policy/tokenizer/tokenizer.json"}) {
    EXPECT_THAT(found({{"step_3/policy/weights/.metadata", "x"}, {beside, "x"}}),
                ElementsAre("dcp in step_3/policy/weights"));
  }
  EXPECT_THAT(found({{"weights/.metadata", "x"}, {"a/b", "x"}}), IsEmpty())
      << "a name that says nothing is only told";
}

TEST(Detect, OnlyTheKeyNamesABackend) {
  const auto of = [](const char* json) {
    return found({{".metadata", "x"}, {"metadata.json", json}});
  };
  EXPECT_THAT(of(R"({"note": "torch_dist"})"), ElementsAre("dcp"))
      << "opening it says what is wrong";
  EXPECT_THAT(of(R"({"sharded_backend": 1})"), ElementsAre("dcp"));
  EXPECT_THAT(of("{"), ElementsAre("dcp"));
  EXPECT_THAT(of(R"({"sharded_backend": "new"})"), ElementsAre("dcp"));
}

TEST(Detect, SeveralInOneFolderAreAllMeant) {
  EXPECT_THAT(found({{"model.safetensors", "x"}, {"mp_rank_00/model_optim_rng.pt", "x"}}),
              ElementsAre("legacy", "hf"));
  EXPECT_THAT(found({{".metadata", "x"}, {"mp_rank_00/model_rng.pt", "x"}}),
              ElementsAre("legacy", "dcp"));
  EXPECT_THAT(found({{".metadata", "x"},
                     {"metadata.json", kTorchDist},
                     {"mp_rank_00_001/model_optim_rng.pt", "x"}}),
              ElementsAre("torch_dist", "legacy"));
  EXPECT_THAT(found({{".metadata", "x"}, {"model.safetensors", "x"}}), ElementsAre("dcp", "hf"));
  // A head beside the model is not the model.
  for (const char* model : {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin"}) {
    EXPECT_THAT(found({{model, "x"}, {"value_head.safetensors", "x"}}),
                ElementsAre("hf", "torch_files"));
  }
}

TEST(Detect, SafetensorsOfAModelCountBeforeItsTorchFiles) {
  for (const char* name : {"model.safetensors", "model-00001-of-00002.safetensors",
                           "model.fp16.safetensors", "gptq_model-4bit-128g.safetensors"}) {
    EXPECT_THAT(found({{"pytorch_model.bin", "x"}, {name, "x"}}), ElementsAre("hf")) << name;
  }
  EXPECT_THAT(
      found({{"diffusion_pytorch_model.bin", "x"}, {"diffusion_pytorch_model.safetensors", "x"}}),
      ElementsAre("hf"));
  for (const char* name : {"adapter_model.safetensors", "model.safetensors.index.json"}) {
    EXPECT_THAT(found({{"pytorch_model.bin", "x"}, {name, "x"}}), ElementsAre("torch_files"));
  }
}

// What goes along with a checkpoint, or is left of one, is no second one.
TEST(Detect, WhatLiesBesideIsNoSecondCheckpoint) {
  EXPECT_THAT(found({{".metadata", "x"},
                     {"metadata.json", kTorchDist},
                     {"hf/config.json", "{}"},
                     {"hf/model.safetensors", "x"},
                     {"config.json", "{}"},
                     {"tokenizer.json", "{}"}}),
              ElementsAre("torch_dist"));
  EXPECT_THAT(found({{".metadata", "x"}, {"mp_rank_00/train_dataloader_dprank000.pt", "x"}}),
              ElementsAre("dcp"));
  EXPECT_THAT(found({{"model.safetensors", "x"}, {"mp_rank_00_000/distrib_optim.pt", "x"}}),
              ElementsAre("hf"));
  EXPECT_THAT(found({{"model.safetensors.index.json", "{}"}, {"mp_rank_00/model_rng.pt", "x"}}),
              ElementsAre("legacy"));
  EXPECT_THAT(found({{"model.safetensors", "x"}, {"metadata.json", kTorchDist}}),
              ElementsAre("hf"));
  EXPECT_THAT(found({{"model.safetensors", "x"}, {"mp_rank_last/model_optim_rng.pt", "x"}}),
              ElementsAre("hf"))
      << "the name has no numbers";
  EXPECT_THAT(found({{"model_config.yaml", "x"}, {"mp_rank_00/model_weights.ckpt", "x"}}),
              ElementsAre("nemo1"));
  EXPECT_THAT(found({{"mp_rank_00_000/distrib_optim.pt", "x"}}), ElementsAre("legacy"))
      << "but it is what remains where nothing else is there";
}

TEST(Detect, DescendsToTheData) {
  EXPECT_THAT(found({{kTracker, " 10\n"},
                     {"iter_0000010/mp_rank_00/model_optim_rng.pt", "x"},
                     {"iter_0000020/mp_rank_00/model_optim_rng.pt", "x"}}),
              ElementsAre("legacy in iter_0000010"));
  EXPECT_THAT(found({{"latest_ckpt_global_step.txt", "10"},
                     {"global_step_10/.metadata", "x"},
                     {"global_step_20/.metadata", "x"}}),
              ElementsAre("dcp in global_step_10"))
      << "SkyRL's";
  EXPECT_THAT(found({{kTracker, "release"}, {"release/.metadata", "x"}}),
              ElementsAre("dcp in release"));
  EXPECT_THAT(found({{"iter_0000005/.metadata", "x"}, {"iter_0000012/.metadata", "x"}}),
              ElementsAre("dcp in iter_0000012"));
  EXPECT_THAT(found({{"release/.metadata", "x"}}), ElementsAre("dcp in release"));
  EXPECT_THAT(found({{"checkpoint-500/model.safetensors", "x"}, {"checkpoint-9/a", "x"}}),
              ElementsAre("hf in checkpoint-500"));
  EXPECT_THAT(found({{"epoch_2/model.safetensors", "x"}, {"epoch_10/model.safetensors", "x"}}),
              ElementsAre("hf in epoch_10"))
      << "torchtune's";
  EXPECT_THAT(found({{"sharded/model.safetensors", "x"}}), ElementsAre("hf in sharded"));
  EXPECT_THAT(found({{"step_5/.metadata", "x"}, {"step_40/.metadata", "x"}}),
              ElementsAre("dcp in step_40"));
}

TEST(Detect, TellsOfALaterSaveThanTheTrackers) {
  const auto notes = [](const Files& others) {
    Files files = {{kTracker, "5"}, {"iter_0000005/.metadata", "x"}};
    files.insert(files.end(), others.begin(), others.end());
    return detected(files).candidates[0].notes;
  };
  EXPECT_THAT(notes({}), IsEmpty());
  EXPECT_THAT(notes({{"iter_0000004/.metadata", "x"}, {"non_persistent/iter_0000005/a", "x"}}),
              IsEmpty());
  EXPECT_THAT(
      notes({{"iter_0000010/.metadata", "x"}}),
      ElementsAre(HasSubstr("iter_0000005 is taken, which latest_checkpointed_iteration.txt "
                            "names; iter_0000010 is a later save")));
  EXPECT_THAT(notes({{"non_persistent/iter_0000006/a", "x"}}),
              ElementsAre(HasSubstr("non_persistent/iter_0000006 is a later save")));
  EXPECT_THAT(detected({{kTracker, "release"}, {"release/.metadata", "x"}, {"iter_0000010/a", "x"}})
                  .candidates[0]
                  .notes,
              IsEmpty());
}

TEST(Detect, FollowsTheFileThatDeepSpeedKeepsAsATracker) {
  const Files files = {{"global_step5/.metadata", "x"}, {"global_step9/.metadata", "x"}};
  Files named = files;
  named.emplace_back("latest", "global_step5\n");
  EXPECT_THAT(found(named), ElementsAre("dcp in global_step5"));
  EXPECT_THAT(found(files), ElementsAre("dcp in global_step9"));
  EXPECT_THAT(detected(files).candidates[0].notes,
              ElementsAre(HasSubstr("which of 2 saves is meant: global_step9 is taken")));
  EXPECT_THAT(detected(named).candidates[0].notes,
              ElementsAre(HasSubstr("which latest names; global_step9 is a later save")));
  EXPECT_THAT(detected({{"global_step5/.metadata", "x"}}).candidates[0].notes, IsEmpty());
  Files gone = files;
  gone.emplace_back("latest", "global_step7");
  EXPECT_THAT(found(gone), ElementsAre("dcp in global_step9")) << "it names nothing";
  const Detection broken = detected(gone);
  ASSERT_TRUE(broken.tracker);
  EXPECT_FALSE(broken.tracker->is_there);
  EXPECT_EQ(broken.tracker->file, "latest");
  EXPECT_EQ(broken.tracker->folder, "global_step7");
  Files named_freely = files;
  named_freely.emplace_back("latest", "../best\n");
  ASSERT_TRUE(detected(named_freely).tracker) << "a save may have any name";
  EXPECT_FALSE(detected(named_freely).tracker->is_there);
  gone.emplace_back("latest_universal", "global_step5");
  EXPECT_TRUE(detected(gone).tracker->is_there) << "one of them is enough";
  Files others = files;
  others.emplace_back("latest", "a line of somebody's log");
  EXPECT_FALSE(detected(others).tracker);
  Files folder = files;
  folder.emplace_back("latest/.metadata", "x");
  EXPECT_THAT(found(folder), ElementsAre("dcp in global_step9")) << "a folder is no file";
}

TEST(Detect, KnowsWhatDeepSpeedWrites) {
  EXPECT_THAT(found({{"latest", "global_step10"},
                     {"zero_to_fp32.py", "x"},
                     {"global_step10/mp_rank_00_model_states.pt", "x"},
                     {"global_step10/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "x"}}),
              ElementsAre("deepspeed_zero in global_step10"));
  EXPECT_THAT(found({{"zero_pp_rank_0_mp_rank_00_model_states.pt", "x"},
                     {"zero_pp_rank_0_mp_rank_00_optim_states.pt", "x"}}),
              ElementsAre("deepspeed_zero"));
  EXPECT_THAT(found({{"mp_rank_00_model_states.pt", "x"}, {"mp_rank_07_model_states.pt", "x"}}),
              ElementsAre("deepspeed_zero"));
  EXPECT_THAT(found({{"mp_rank_00_model_states.pt", "x"}, {"zero/lm_head.weight/fp32.pt", "x"}}),
              ElementsAre("deepspeed_universal"));
  EXPECT_THAT(found({{"latest_universal", "step5_universal"},
                     {"step5_universal/mp_rank_00_model_states.pt", "x"},
                     {"step5_universal/zero/lm_head.weight/fp32.pt", "x"}}),
              ElementsAre("deepspeed_universal in step5_universal"));
  EXPECT_THAT(found({{"latest", "global_step5"},
                     {"global_step5/layer_01-model_00-model_states.pt", "x"},
                     {"global_step5/mp_rank_00_model_states.pt", "x"}}),
              ElementsAre("deepspeed_pipe in global_step5"));
}

TEST(Detect, TellsDeepSpeedsFilesFromMegatronsFolders) {
  EXPECT_THAT(found({{"mp_rank_00/model_optim_rng.pt", "x"}}), ElementsAre("legacy"));
  EXPECT_THAT(
      found({{"mp_rank_00_model_states.pt", "x"}, {"expert_3_mp_rank_00_model_states.pt", "x"}}),
      IsEmpty())
      << "experts have files of their own";
  EXPECT_THAT(found({{"zero/a/fp32.pt", "x"}}), IsEmpty()) << "nothing names its parameters";
  EXPECT_THAT(found({{"zero_pp_rank_0_mp_rank_00_optim_states.pt.tmp", "x"},
                     {"bf16_mp_rank_00_model_states.pt", "x"},
                     {"mp_rank_00_optim_states.pt", "x"},
                     {"zero_pp_rank_x_mp_rank_00_model_states.pt", "x"}}),
              IsEmpty());
}

TEST(Detect, KnowsWhatNemoOneWrites) {
  EXPECT_THAT(found({{"model_config.yaml", "x"}, {"model_weights.ckpt", "x"}}),
              ElementsAre("nemo1"));
  EXPECT_THAT(found({{"tp_rank_00_pp_rank_000/model_weights.ckpt", "x"}}), ElementsAre("nemo1"));
  EXPECT_THAT(found({{"model_config.yaml", "x"}, {"model_weights/a/.zarray", "x"}}),
              ElementsAre("nemo1"));
  EXPECT_THAT(found({{"mp_rank_00_fsdp_shard_00001/model_weights.ckpt", "x"}}),
              ElementsAre("nemo1"));
  EXPECT_THAT(found({{"model_config.yaml", "x"}, {"tp_rank_00/model_weights.ckpt", "x"}}),
              IsEmpty());
}

TEST(Detect, ALoneFileIsReadByItselfOrNotAtAll) {
  MemoryDirectory directory;
  put({{"model.pt", "x"}, {"notes.txt", "x"}, {"iter_0000001/.metadata", "x"}}, directory);
  const Detection model = detect(directory, {}, "model.pt").value();
  ASSERT_EQ(model.candidates.size(), 1U);
  EXPECT_EQ(model.candidates[0].format->name(), "torch_files");
  directory.put(kTracker, "7");
  const Detection notes = detect(directory, {}, "notes.txt").value();
  EXPECT_THAT(notes.candidates, IsEmpty());
  EXPECT_FALSE(notes.tracker) << "that is about what lies beside it";
}

TEST(Detect, DescendsIntoWhatVerlNemoAndVeOmniWrite) {
  EXPECT_THAT(found({{"actor/dist_ckpt/.metadata", "x"},
                     {"actor/dist_ckpt/metadata.json", kTorchDist},
                     {"actor/huggingface/config.json", "{}"},
                     {"data.pt", "x"}}),
              ElementsAre("torch_dist in actor/dist_ckpt"));
  EXPECT_THAT(found({{kTracker, "5"},
                     {"global_step_5/actor/dist_ckpt/.metadata", "x"},
                     {"global_step_9/actor/dist_ckpt/.metadata", "x"}}),
              ElementsAre("dcp in global_step_5/actor/dist_ckpt"));
  EXPECT_THAT(found({{"global_step_9/actor/dist_ckpt/.metadata", "x"},
                     {"global_step_10/actor/dist_ckpt/.metadata", "x"}}),
              ElementsAre("dcp in global_step_10/actor/dist_ckpt"));
  EXPECT_THAT(found({{"weights/.metadata", "x"},
                     {"weights/metadata.json", kTorchDist},
                     {"context/io.json", "{}"}}),
              ElementsAre("torch_dist in weights"));
  EXPECT_THAT(found({{"weights/.metadata", "x"}}), IsEmpty()) << "NeMo writes both folders";
  EXPECT_THAT(found({{"checkpoints/global_step_3/.metadata", "x"}}),
              ElementsAre("dcp in checkpoints/global_step_3"));
}

TEST(Detect, WaysThatAreEquallyGoodAreAllMeant) {
  EXPECT_THAT(found({{"iter_0000010/.metadata", "x"}, {"global_step_4/model.safetensors", "x"}}),
              ElementsAre("dcp in iter_0000010", "hf in global_step_4"));
  EXPECT_THAT(found({{"actor/dist_ckpt/.metadata", "x"}, {"critic/dist_ckpt/.metadata", "x"}}),
              ElementsAre("dcp in actor/dist_ckpt", "dcp in critic/dist_ckpt"));
  EXPECT_THAT(found({{"dist_ckpt/.metadata", "x"}, {"huggingface/model.safetensors", "x"}}),
              ElementsAre("dcp in dist_ckpt", "hf in huggingface"));
  EXPECT_THAT(found({{"dist_ckpt/.metadata", "x"}, {"huggingface/config.json", "{}"}}),
              ElementsAre("dcp in dist_ckpt"));
}

TEST(Detect, AChoiceFindsWhatItNames) {
  const Files both = {{"model.safetensors", "x"},
                      {"mp_rank_00/model_optim_rng.pt", "x"},
                      {"iter_0000010/.metadata", "x"},
                      {"iter_0000010/metadata.json", kTorchDist}};
  EXPECT_THAT(found(both, "hf"), ElementsAre("hf"));
  EXPECT_THAT(found(both, "legacy"), ElementsAre("legacy"));
  EXPECT_THAT(found(both, "torch_dist"), ElementsAre("torch_dist in iter_0000010"));
  EXPECT_THAT(found(both, "dcp"), IsEmpty());
  EXPECT_THAT(found({{"mp_rank_00/distrib_optim.pt", "x"}}, "hf"), IsEmpty());
  EXPECT_THAT(found(both, "mimo"), ElementsAre("torch_dist in iter_0000010")) << "once opened";
  EXPECT_THAT(found({{".metadata", "x"}}, "fsdp_dtensor"), ElementsAre("dcp"));
  EXPECT_THAT(found({{".metadata", "x"}, {"metadata.json", kFsdp}}, "fsdp_dtensor"),
              ElementsAre("fsdp_dtensor"));
  EXPECT_THAT(found({{".metadata", "x"}, {"metadata.json", kFsdp}}, "mlite"), IsEmpty())
      << "one dialect is not another";
  EXPECT_THAT(found({{kTracker, "10"},
                     {"iter_0000010/.metadata", "x"},
                     {"huggingface/model.safetensors", "x"}},
                    "hf"),
              ElementsAre("hf in huggingface"));
}

TEST(Detect, TellsWhereAChoiceIsNeeded) {
  const auto flags = [](const Files& files, std::string_view format = {}) {
    std::vector<std::string> texts;
    for (const Candidate& candidate : detected(files, format).candidates) {
      texts.push_back(flag_of(candidate));
    }
    return texts;
  };
  const Files both = {{"model.safetensors", "x"}, {"mp_rank_00/model_rng.pt", "x"}};
  EXPECT_THAT(flags(both), ElementsAre(" --as legacy", " --as hf"));
  EXPECT_THAT(flags(both, "hf"), ElementsAre(" --as hf"));
  EXPECT_THAT(flags({{"model.safetensors", "x"}}), ElementsAre(""));
  EXPECT_THAT(flags({{"actor/.metadata", "x"}, {"critic/.metadata", "x"}}), ElementsAre("", ""));
  const Files remains = {{"model.safetensors", "x"}, {"mp_rank_00/distrib_optim.pt", "x"}};
  EXPECT_THAT(flags(remains), ElementsAre(""));
  EXPECT_THAT(flags(remains, "legacy"), ElementsAre(" --as legacy"));
}

TEST(Detect, SeesBrokenTrackers) {
  const Detection gone =
      detected({{kTracker, "30"}, {"iter_0000020/mp_rank_00/model_optim_rng.pt", "x"}});
  ASSERT_TRUE(gone.tracker);
  EXPECT_FALSE(gone.tracker->is_there);
  EXPECT_EQ(gone.tracker->folder, "iter_0000030");
  EXPECT_EQ(gone.candidates.at(0).folder, "iter_0000020") << "the newest that is there";
  const Detection garbled = detected({{kTracker, "../../etc"}});
  EXPECT_EQ(garbled.tracker->folder, "");
  const std::string page(1000, 'x');
  EXPECT_EQ(detected({{kTracker, page.c_str()}}).tracker->text.size(), 40U);
  const Detection empty = detected({{kTracker, "30"}, {"iter_0000020/.metadata", "x"}});
  EXPECT_FALSE(empty.tracker->is_there);
  const Detection nested = detected({{kTracker, "30"},
                                     {"iter_0000030/latest_checkpointed_iteration.txt", "7"},
                                     {"iter_0000030/iter_0000005/.metadata", "x"}});
  EXPECT_FALSE(nested.tracker->is_there) << "the broken one counts";
  EXPECT_EQ(nested.run, "iter_0000030");
  const Detection outer = detected({{kTracker, "30"},
                                    {"iter_0000020/latest_checkpointed_iteration.txt", "5"},
                                    {"iter_0000020/iter_0000005/.metadata", "x"}});
  EXPECT_FALSE(outer.tracker->is_there);
  EXPECT_EQ(outer.run, "");
  // One on a way that leads nowhere is of no matter.
  EXPECT_FALSE(detected({{"actor/latest_checkpointed_iteration.txt", "3"},
                         {"huggingface/model.safetensors", "x"}})
                   .tracker);
}

TEST(Detect, LooksIntoAFewFoldersOnly) {
  EXPECT_THAT(found({{"iter_1/iter_1/iter_1/iter_1/iter_1/.metadata", "x"}}),
              ElementsAre("dcp in iter_1/iter_1/iter_1/iter_1/iter_1"));
  EXPECT_THAT(found({{"iter_1/iter_1/iter_1/iter_1/iter_1/iter_1/.metadata", "x"}}), IsEmpty());
  // 3^5 folders, each as good as the others.
  std::vector<std::string> folders = {""};
  for (int depth = 0; depth < 5; ++depth) {
    std::vector<std::string> deeper;
    for (const std::string& folder : folders) {
      for (const char* name : {"actor/", "critic/", "release/"}) deeper.push_back(folder + name);
    }
    folders = std::move(deeper);
  }
  MemoryDirectory directory;
  for (const std::string& folder : folders) directory.put(folder + ".metadata", "x");
  EXPECT_LE(detect(directory).value().candidates.size(), 110U);
}

// OpenRLHF's, ms-swift's and NeMo's runs, whose folders are called after the run.
TEST(Detect, TellsWhatLiesInFoldersOfUnknownNames) {
  const auto below = [](const Files& files) {
    const Detection detection = detected(files);
    EXPECT_THAT(detection.candidates, IsEmpty()) << "it is not meant";
    return first_of_text(detection.below);
  };
  EXPECT_EQ(below({{"_actor/global_step5/.metadata", "x"}, {"_critic/.metadata", "x"}}),
            "dcp in _actor/global_step5, dcp in _critic");
  EXPECT_EQ(
      below({{"v0-2025/logging.jsonl", "x"}, {"v0-2025/checkpoint-8/model.safetensors", "x"}}),
      "hf in v0-2025/checkpoint-8");
  EXPECT_EQ(below({{"run/2025/checkpoints/last/weights/.metadata", "x"},
                   {"run/2025/checkpoints/last/context/model.yaml", "x"}}),
            "dcp in run/2025/checkpoints/last/weights");
  EXPECT_EQ(below({{"global_step_5/actor/dcp_checkpoint/.metadata", "x"},
                   {"global_step_5/actor/model_state_dict/full_weights.pt", "x"}}),
            "dcp in global_step_5/actor/dcp_checkpoint")
      << "RLinf's; its whole weights count where they are alone";
  EXPECT_EQ(below({{"step100/model_and_optim/.metadata", "x"},
                   {"step100/train/rank0.pt", "x"},
                   {"step50/model_and_optim/.metadata", "x"}}),
            "dcp in step100/model_and_optim")
      << "OLMo-core's";
  EXPECT_EQ(below({{"epoch-1_step-20/modeling/pytorch_model.bin.index.json", "{}"},
                   {"epoch-1_step-20/optimizer/pytorch_optim.bin.index.json", "{}"},
                   {"epoch-0_step-10/modeling/pytorch_model.bin.index.json", "{}"}}),
            "torch_files in epoch-1_step-20/modeling")
      << "ColossalAI's";
  EXPECT_EQ(below({{".cache/model.safetensors", "x"}, {"logs/events", "x"}}), "");
  EXPECT_EQ(below({{"a/b/c/d/e/model.safetensors", "x"}}), "") << "too deep";
  EXPECT_EQ(below({{"base/model.safetensors", "x"}, {"out/last/model.safetensors", "x"}}),
            "hf in base, hf in out/last")
      << "what lies deeper may be what is meant";
  EXPECT_TRUE(detected({{"base/model.safetensors", "x"}}).has_all_below);
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(std::to_string(i) + "_/.metadata");
  Files many;
  for (const std::string& name : names) many.emplace_back(name.c_str(), "x");
  EXPECT_THAT(below(many), HasSubstr("and 195 more"));
  EXPECT_FALSE(detected(many).has_all_below);
  const Detection broken = detected({{kTracker, "3"}, {"old/.metadata", "x"}});
  EXPECT_THAT(broken.below, IsEmpty()) << "the tracker tells what was meant";
}

TEST(Detect, TellsOfFilesThatMayBeModels) {
  const auto below = [](const Files& files) {
    const Detection detection = detected(files);
    EXPECT_THAT(detection.candidates, IsEmpty()) << "it is not meant";
    return first_of_text(detection.below);
  };
  EXPECT_EQ(below({{"latest-rank0.pt", "x"}}), "torch_files in latest-rank0.pt");
  EXPECT_EQ(below({{"ep0-ba10-rank0.pt", "x"}, {"latest-rank0.pt", "x"}}),
            "torch_files in latest-rank0.pt")
      << "Composer's last one";
  EXPECT_EQ(below({{"epoch=1-step=5.ckpt", "x"}, {"last.ckpt", "x"}}), "torch_files in last.ckpt")
      << "Lightning's last one";
  EXPECT_EQ(below({{"epoch=1-step=5.ckpt", "x"}, {"epoch=2-step=9.ckpt", "x"}}),
            "torch_files in epoch=1-step=5.ckpt, torch_files in epoch=2-step=9.ckpt");
  EXPECT_EQ(below({{"global_step_5/actor/model_state_dict/full_weights.pt", "x"},
                   {"global_step_5/actor/local_shard_checkpoint/checkpoint_rank_0.pt", "x"}}),
            "torch_files in global_step_5/actor/model_state_dict/full_weights.pt");
  EXPECT_EQ(below({{"lit_model.pth", "x"}, {"old/weights.pt", "x"}}),
            "torch_files in lit_model.pth");
  EXPECT_EQ(below({{"optimizer.pt", "x"}, {"rng_state.pth", "x"}, {"words.bin", "x"}}), "");
}

TEST(Detect, AMetadataJsonOfOtherSoftwareMayBeLarge) {
  const std::string large = "[\"" + std::string(std::size_t{2} << 20, 'x') + "\"]";
  EXPECT_THAT(found({{"model.safetensors", "x"}, {"metadata.json", large.c_str()}}),
              ElementsAre("hf"));
}

TEST(Detect, ZarrLiesBesideFoldersOfRanks) {
  EXPECT_THAT(found({{"mp_rank_00/distrib_optim.pt", "x"}, {"weight/.zarray", "{}"}}),
              ElementsAre("zarr"));
  EXPECT_THAT(found({{".metadata", "x"}, {"metadata.json", kTorchDist}, {"weight/.zarray", "{}"}}),
              ElementsAre("torch_dist"))
      << "metadata.json says which it is";
}

TEST(OnlyCandidate, NamesEachAndTheWayOut) {
  const auto refused = [](const Files& files, const FormatChoice& choice = {}) {
    MemoryDirectory directory;
    put(files, directory);
    return only_candidate(directory, "ckpt", detect(directory, choice.format).value(), choice)
        .error();
  };
  const Files both = {{"model.safetensors", "x"}, {"mp_rank_00/model_rng.pt", "x"}};
  EXPECT_EQ(refused(both).code, Code::kTwoCheckpoints);
  EXPECT_EQ(refused(both).message,
            "ckpt holds two checkpoints: legacy (mp_rank_00 holds what one rank saved) and hf "
            "(model.safetensors holds weights); name one with --as FORMAT");
  EXPECT_THAT(refused(both, {"", "--other-as"}).message, HasSubstr("with --other-as FORMAT"));
  EXPECT_THAT(refused(both, {"", ""}).message, HasSubstr("; give a folder that holds one only"));
  EXPECT_THAT(refused({{"actor/.metadata", "x"}, {"critic/.metadata", "x"}}).message,
              HasSubstr("dcp in actor (.metadata lists the stored chunks) and dcp in critic "
                        "(.metadata lists the stored chunks); give the folder of one of them"));
  const Error wrong = refused({{"iter_0000001/.metadata", "x"}}, {"hf"});
  EXPECT_EQ(wrong.code, Code::kUsage);
  EXPECT_EQ(wrong.message, "--as hf: ckpt holds dcp (.metadata lists the stored chunks), no hf");
  EXPECT_EQ(refused({}, {"hf"}).code, Code::kUnknownFormat);
  EXPECT_EQ(refused({{kTracker, "3"}, {"iter_0000001/.metadata", "x"}}).code, Code::kTrackerBroken);
  EXPECT_THAT(refused({{kTracker, "../etc"}}).message,
              HasSubstr("found '../etc', expected an iteration or 'release'"));
  EXPECT_EQ(refused({{"v0/checkpoint-8/model.safetensors", "x"}}, {"hf"}).message,
            "ckpt: found v0; further down there is hf in v0/checkpoint-8; give that path");
  EXPECT_THAT(
      refused({{"pytorch_model_fsdp_rank0.bin", "x"}, {"optimizer_0/.metadata", "x"}}).message,
      HasSubstr("ckpt: pytorch_model_fsdp_rank0.bin shows FSDP1's local state dict"));
  EXPECT_EQ(refused({{"a", "x"}, {"b", "x"}, {"c", "x"}, {"d", "x"}, {"e", "x"}}).message,
            "ckpt: found a, b, c, d, expected .metadata, *.safetensors or iter_* folders");
}

TEST(OnlyCandidate, OnceOpenedADialectCountsToo) {
  const SourceFormat& dcp = *find_source_format("dcp");
  Location location;
  location.format = "mlite";
  for (const char* format : {"", "dcp", "mlite"}) {
    EXPECT_TRUE(check_opened({format}, dcp, location)) << format;
  }
  EXPECT_EQ(check_opened({"mimo"}, dcp, location).error().code, Code::kUsage);
}

TEST(Detect, NamesEachModelOfASaveOfAccelerates) {
  Files save = {{"pytorch_model_fsdp_0/.metadata", "x"}, {"optimizer_0/.metadata", "x"}};
  EXPECT_THAT(found(save), ElementsAre("dcp in pytorch_model_fsdp_0"));
  save.emplace_back("pytorch_model_fsdp_1/.metadata", "x");
  EXPECT_THAT(found(save),
              ElementsAre("dcp in pytorch_model_fsdp_0", "dcp in pytorch_model_fsdp_1"));
}

TEST(Detect, LeadsFromAPipelineToItsTransformer) {
  const Files pipeline = {
      {"model_index.json", "{}"},
      {"scheduler/scheduler_config.json", "{}"},
      {"transformer/config.json", "{}"},
      {"transformer/diffusion_pytorch_model-00001-of-00002.safetensors", ""},
      {"transformer/diffusion_pytorch_model.safetensors.index.json", "{}"},
      {"vae/diffusion_pytorch_model.safetensors", ""},
  };
  const Detection one = detected(pipeline);
  ASSERT_EQ(one.candidates.size(), 1U);
  EXPECT_EQ(one.candidates[0].folder, "transformer");
  EXPECT_THAT(one.candidates[0].facts,
              ElementsAre("diffusion_pytorch_model.safetensors.index.json names the weight files"));
  EXPECT_THAT(one.candidates[0].notes, ElementsAre(HasSubstr("scheduler, vae are left")));
  Files two = pipeline;
  two.emplace_back("transformer_2/diffusion_pytorch_model.safetensors", "");
  EXPECT_THAT(found(two), ElementsAre("hf in transformer", "hf in transformer_2"));
  Files none = pipeline;
  none.erase(none.begin());
  EXPECT_THAT(found(none), IsEmpty()) << "a folder of that name may be anything";
}

}  // namespace
}  // namespace shardwright
