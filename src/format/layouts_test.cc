// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "codec/pickle_encode.h"
#include "codec/pickle_value.h"
#include "codec/torch_item.h"
#include "codec/torch_layout.h"
#include "dcp/torch_dist_layout.h"
#include "dcp/torch_items.h"
#include "format/hf/hf_layout.h"
#include "format/hf_artifacts.h"
#include "format/safetensors_reader.h"
#include "io/memory_directory.h"
#include "io/watched_directory.h"
#include "state/common_state.h"
#include "state/run_config.h"
#include "state/state_document.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<TensorDesc> kTwo = {{"a", DType::kF32, {2, 3}}, {"b", DType::kBF16, {4}}};

// The bytes of file `index` of a layout, payloads left zero.
std::string file_of(const HfLayout& layout, std::uint32_t index) {
  std::string bytes(static_cast<std::size_t>(layout.file_sizes[index]), '\0');
  for (const Literal& literal : layout.literals) {
    if (literal.file == index) bytes.replace(literal.offset, literal.bytes.size(), literal.bytes);
  }
  return bytes;
}

Result<Catalog> read_catalog(const Directory& directory) {
  SourceFiles files(directory, {}, 4);
  Defects first;
  WeightChoice choice;
  choice.files = SW_TRY(list_weight_files(directory));
  if (directory.exists(std::string(kHfIndexFile))) {
    choice.index = SW_TRY(read_hf_index(directory, kHfIndexFile));
    choice.files.clear();
    for (const auto& [key, file] : choice.index->files) choice.files.push_back(file);
    choice.files.erase(std::unique(choice.files.begin(), choice.files.end()), choice.files.end());
  }
  return read_hf_catalog(directory, std::move(choice), files, first);
}

TEST(HfLayout, ShardsAndIndexReadBackAsWritten) {
  const HfLayout layout = layout_hf(kTwo, 20).value();
  EXPECT_THAT(layout.catalog.files,
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
  EXPECT_THAT(layout.index, HasSubstr("\"total_size\": 32"));
  MemoryDirectory directory;
  directory.put(layout.catalog.files[0], file_of(layout, 0));
  directory.put(layout.catalog.files[1], file_of(layout, 1));
  directory.put("model.safetensors.index.json", layout.index);
  const Catalog catalog = read_catalog(directory).value();
  ASSERT_EQ(catalog.tensors.size(), 2U);
  EXPECT_EQ(catalog.tensors[0].desc.name, "a");
  EXPECT_EQ(catalog.tensors[1].chunks.range(0).offset,
            layout.catalog.tensors[1].chunks.range(0).offset);
  EXPECT_TRUE(layout_hf(kTwo, 1000).value().index.empty());
  EXPECT_EQ(layout_hf({kTwo[0], kTwo[0]}, 1000).error().code, Code::kDuplicateName);
}

TEST(HfReader, FindsGhostAndUnlistedKeys) {
  const HfLayout layout = layout_hf(kTwo, 1000).value();
  MemoryDirectory directory;
  directory.put("m.safetensors", file_of(layout, 0));
  const auto with_index = [&](const std::string& map) {
    directory.put("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
    return read_catalog(directory).error();
  };
  const Error ghost =
      with_index(R"("a": "m.safetensors", "b": "m.safetensors", "c": "m.safetensors")");
  EXPECT_EQ(ghost.code, Code::kIndexMismatch);
  EXPECT_THAT(ghost.message, HasSubstr("1 keys are not in the files it names: c"));
  EXPECT_THAT(with_index(R"("a": "m.safetensors")").message, HasSubstr("files it names: b"));
  EXPECT_EQ(with_index(R"("a": "gone.safetensors")").code, Code::kNotFound);
  EXPECT_EQ(with_index(R"("a": "../m.safetensors")").code, Code::kPathEscapes);
  EXPECT_EQ(with_index(R"("a": 3)").code, Code::kJsonCorrupt);
}

TEST(HfReader, RefusesATensorInTwoFiles) {
  const HfLayout layout = layout_hf(kTwo, 1000).value();
  MemoryDirectory directory;
  directory.put("x.safetensors", file_of(layout, 0));
  directory.put("y.safetensors", file_of(layout, 0));
  EXPECT_EQ(read_catalog(directory).error().code, Code::kDuplicateName);
}

TEST(HfReader, CarriesFilesThatAreNoWeights) {
  MemoryDirectory directory;
  for (const char* name :
       {"config.json", "tokenizer.model", "model.safetensors", "old.bin",
        "model.safetensors.index.json", ".gitattributes", "w.gguf", "__0_0.distcp", ".metadata",
        "__1.metadata", "adapter_config.json", "adapter_model.bin"}) {
    directory.put(name, "x");
  }
  // What this program told of the model, wherever it was put.
  directory.put("run.log", "2026-01-31T12:00:00Z shardwright 0.1.0: convert . out\n");
  directory.put("my.plan", "{\n \"schema\": \"shardwright/saved-plan/1\"");
  directory.put("sums.json", "{\n  \"schema\": \"shardwright/hash/1\"");
  directory.put("report.html", "<!doctype html><title>shardwright</title>");
  std::vector<std::string> names;
  Defects defects;
  const auto artifacts = list_hf_artifacts(directory, "", defects).value();
  for (const DirectoryEntry& entry : artifacts) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("config.json", "tokenizer.model"));
}

TEST(HfReader, LeavesARunsOwnLogToGrow) {
  auto memory = std::make_unique<MemoryDirectory>();
  MemoryDirectory& inner = *memory;
  const std::string began = "2026-01-31T12:00:00Z shardwright 0.1.0: convert . out\n";
  inner.put("run.log", began);
  const WatchedDirectory watched(std::move(memory));
  Defects defects;
  EXPECT_THAT(list_hf_artifacts(watched, "", defects).value(), testing::IsEmpty());
  inner.put("run.log", began + "2026-01-31T12:00:09Z copying  16 %\n");
  EXPECT_TRUE(watched.check_unchanged());
}

TEST(HfReader, CarriesTheFoldersThatGoAlongWithAModel) {
  MemoryDirectory directory;
  for (const char* name : {"config.json", "additional_chat_templates/tool_use.jinja",
                           "1_Pooling/config.json", "2_Dense/model.safetensors", "onnx/a.onnx"}) {
    directory.put(name, "x");
  }
  const auto carried = [&](const std::string& modules) {
    directory.put("modules.json", modules);
    std::vector<std::string> names;
    Defects defects;
    const auto artifacts = list_hf_artifacts(directory, "", defects).value();
    for (const DirectoryEntry& entry : artifacts) names.push_back(entry.name);
    return names;
  };
  EXPECT_THAT(carried(R"([{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"},
                          {"path": "../out"}, {"path": 3}, "onnx"])"),
              ElementsAre("config.json", "modules.json", "1_Pooling/config.json",
                          "2_Dense/model.safetensors", "additional_chat_templates/tool_use.jinja"));
  directory.put("modules.json", "{");
  Defects defects;
  EXPECT_EQ(list_hf_artifacts(directory, "", defects).error().code, Code::kJsonCorrupt);
}

TEST(TorchDistLayout, PutsObjectsFirstWithoutGapsAndAlignsPayloads) {
  const TensorDesc desc{"w", DType::kF32, {4, 3}};
  const std::vector<TorchDistTensor> tensors = {
      {desc, OwnedChunks(2, {{Box{{0, 0}, {2, 3}}, 0}, {Box{{2, 0}, {2, 3}}, 3}})}};
  const TorchDistLayout layout =
      layout_torch_dist(tensors, {{"o/shard_0_1", 77, 3}}, "iter/").value();
  EXPECT_THAT(layout.catalog.files, ElementsAre("iter/__0_0.distcp", "iter/__3_0.distcp"));
  const ByteRange object = layout.catalog.objects[0].range;
  const ByteRange second = layout.catalog.tensors[0].chunks.range(1);
  EXPECT_EQ(object.offset, 0U);
  EXPECT_EQ(second.offset, 77U);
  EXPECT_EQ(layout.file_sizes[1], second.offset + second.length);
  const TensorItem item = TensorItem::make(DType::kF32, {2, 3}, second.offset).value();
  EXPECT_EQ((second.offset + item.payload_offset()) % 64, 0U);
}

// A .distcp file with one item, and the catalog that points at it.
class TorchItems : public testing::Test {
 protected:
  void SetUp() override {
    const TensorItem item = TensorItem::make(DType::kF32, {2, 3}, 0).value();
    std::string bytes = item.head();
    payload_ = bytes.size();
    bytes += std::string(24, '\0');
    bytes += item.tail(0x4128908);
    directory_.put("f", bytes);
    catalog_.files = {"f"};
    StoredTensor tensor{{"w", DType::kF32, {2, 3}}, ChunkList(2), Encoding::kTorchItem};
    tensor.chunks.push_back({Box{{0, 0}, {2, 3}}, 0, {0, bytes.size()}, {}});
    catalog_.tensors = {tensor};
  }

  Status locate() {
    SourceFiles files(directory_, catalog_.files, 4);
    const auto notes = SW_TRY(locate_items(catalog_, files));
    EXPECT_TRUE(notes.empty());
    return {};
  }

  MemoryDirectory directory_;
  Catalog catalog_;
  std::size_t payload_ = 0;
};

TEST_F(TorchItems, AreLocated) {
  ASSERT_TRUE(locate());
  EXPECT_EQ(catalog_.tensors[0].encoding, Encoding::kRaw);
  EXPECT_EQ(catalog_.tensors[0].chunks.range(0).offset, payload_);
  EXPECT_EQ(catalog_.tensors[0].chunks.range(0).length, 24U);
}

TEST_F(TorchItems, OfAnotherShapeOrTypeAreRefused) {
  catalog_.tensors[0].desc.dtype = DType::kBF16;
  EXPECT_EQ(locate().error().code, Code::kChunkMismatch);
  SetUp();
  catalog_.tensors[0].desc.shape = {3, 2};
  catalog_.tensors[0].chunks = ChunkList(2);
  catalog_.tensors[0].chunks.push_back(
      {Box{{0, 0}, {3, 2}}, 0, {0, directory_.contents("f").size()}, {}});
  const Status status = locate();
  EXPECT_EQ(status.error().code, Code::kChunkMismatch);
  EXPECT_THAT(status.error().message, HasSubstr("tensor w"));
}

TEST(RunConfig, KeepsPlainValuesOnly) {
  const Arguments arguments =
      read_run_config(
          "model:\n  num_layers: 4\n  rotary_base: 1.0e4\n  tied: true\n  none: null\n"
          "  name: '12'\n  freq: [0, 1]\n  parts: [0.5, 2]\n  fn: {_target_: os.system}\n")
          .value();
  EXPECT_EQ(arguments.at("num_layers"), ArgValue{std::int64_t{4}});
  EXPECT_EQ(arguments.at("rotary_base"), ArgValue{1.0e4});
  EXPECT_EQ(arguments.at("tied"), ArgValue{true});
  EXPECT_EQ(arguments.at("none"), ArgValue{});
  EXPECT_EQ(arguments.at("name"), ArgValue{std::string("12")});
  EXPECT_EQ(arguments.at("freq"), (ArgValue{std::vector<std::int64_t>{0, 1}}));
  EXPECT_EQ(arguments.at("parts"), (ArgValue{std::vector<double>{0.5, 2.0}}));
  EXPECT_FALSE(arguments.contains("fn"));
  EXPECT_EQ(read_run_config("model: [").error().code, Code::kYamlCorrupt);
  EXPECT_EQ(read_run_config("a: 1").error().code, Code::kYamlCorrupt);
}

constexpr const char* kDense =
    "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full/iter_0000010/common.pt";
constexpr const char* kMoe =
    "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full/iter_0000010/common.pt";

TEST(CommonState, KeepsWhatIsNotEdited) {
  const CommonState state = CommonState::read(read_golden(kDense)).value();
  EXPECT_EQ(state.iteration(), 10);
  Arguments before = state.arguments();
  EXPECT_EQ(before.at("num_layers"), ArgValue{std::int64_t{4}});
  CommonStateEdits edits;
  edits.arguments = {{"tensor_model_parallel_size", std::int64_t{8}}, {"new_one", true}};
  std::vector<std::string> notes;
  const CommonState after = CommonState::read(state.encode(edits, notes).value()).value();
  before["tensor_model_parallel_size"] = std::int64_t{8};
  before["new_one"] = true;
  EXPECT_EQ(after.arguments(), before);
  EXPECT_EQ(after.iteration(), 10);
}

TEST(CommonState, RegroupsOptimizersBothWays) {
  const CommonState dense = CommonState::read(read_golden(kDense)).value();
  CommonStateEdits edits;
  edits.chain.experts_apart = true;
  std::vector<std::string> notes;
  ASSERT_TRUE(dense.encode(edits, notes));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("split")));
  notes.clear();
  const CommonState moe = CommonState::read(read_golden(kMoe)).value();
  edits.chain.experts_apart = false;
  ASSERT_TRUE(moe.encode(edits, notes));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("joined")));
  notes.clear();
  edits.drop_optimizer = true;
  const std::string dropped = moe.encode(edits, notes).value();
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(dropped.find("param_groups"), std::string::npos);
}

TEST(CommonState, SaysWhatTheTargetsStatesAre) {
  StateDocument edited = StateDocument::read(read_golden(kMoe)).value();
  pickle::Document& document = edited.document();
  const pickle::Value content = edited.dict().find("content_metadata");
  document.set(content, "distrib_optim_sharding_type", document.string("dp_reshardable"));
  const CommonState wrong = CommonState::read(edited.encode().value()).value();
  EXPECT_EQ(wrong.sharding().content, "dp_reshardable");
  EXPECT_THAT(wrong.sharding().optimizers, ElementsAre("fully_reshardable", "fully_reshardable"));
  CommonStateEdits edits;
  edits.chain.experts_apart = true;
  std::vector<std::string> notes;
  const auto said = [&] {
    return CommonState::read(wrong.encode(edits, notes).value()).value().sharding().content;
  };
  EXPECT_EQ(said(), "dp_reshardable");
  edits.says_reshardable = true;
  EXPECT_EQ(said(), "fully_reshardable");
}

// The groups of a common state by part, whose they are and their rate: `0 dense 0.1`.
std::vector<std::string> groups_of_state(const std::string& bytes) {
  StateDocument state = StateDocument::read(bytes).value();
  const pickle::Value optimizer = state.dict().find("optimizer");
  std::vector<std::string> found;
  const auto add = [&](std::string_view part, pickle::Value dict) {
    const pickle::Value list = dict.find("optimizer").find("param_groups");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool is_expert = list[i].find("is_expert_parallel").as_bool().value_or(false);
      found.push_back(fmt::format("{} {} {}", part, is_expert ? "expert" : "dense",
                                  list[i].find("max_lr").as_double().value_or(0)));
    }
  };
  if (!optimizer.find(std::int64_t{0})) add("all", optimizer);
  for (std::int64_t part = 0; part < 3; ++part) {
    add(std::to_string(part), optimizer.find(part));
  }
  return found;
}

// As Megatron makes them: a group for each kind of parameter that is there.
TEST(CommonState, BiasesOfExpertsHaveAGroup) {
  const CommonState dense = CommonState::read(read_golden(kDense)).value();
  CommonStateEdits edits;
  edits.chain.experts_apart = true;
  std::vector<std::string> notes;
  const auto groups_of_experts = [&] {
    const auto groups = groups_of_state(dense.encode(edits, notes).value());
    return std::ranges::count_if(
        groups, [](const std::string& group) { return group.starts_with("1 expert"); });
  };
  EXPECT_EQ(groups_of_experts(), 1) << "weights alone";
  edits.chain.experts_have_biases = true;
  EXPECT_EQ(groups_of_experts(), 2);
}

// A chain as Megatron-Core 0.19 writes it for an optimizer of matrices with Adam beside it.
CommonState chain_of(std::string_view main_setting, bool has_experts_apart,
                     double rate_of_experts = 0.5) {
  pickle::Document document;
  const auto group = [&](bool is_adam, bool is_expert, double decay) {
    const pickle::Value made = document.dict();
    document.set(made, "wd_mult", document.real(decay));
    document.set(made, "is_expert_parallel", document.boolean(is_expert));
    document.set(made, is_adam ? "betas" : main_setting, document.real(0.9));
    if (is_adam) document.set(made, "optimizer", document.string("adam"));
    const double rate = is_expert ? rate_of_experts : 0.5;
    document.set(made, "max_lr", document.real(is_adam ? 0.25 : rate));
    return made;
  };
  const auto part = [&](const std::vector<pickle::Value>& groups) {
    const pickle::Value inner = document.dict();
    document.set(inner, "param_groups", document.list(groups));
    const pickle::Value made = document.dict();
    document.set(made, "optimizer", inner);
    return made;
  };
  std::vector<pickle::Value> parts = {part({group(false, false, 1.0)})};
  if (has_experts_apart) parts.push_back(part({group(false, true, 1.0)}));
  parts.push_back(part({group(true, false, 1.0), group(true, false, 0.0)}));
  const pickle::Value chain = document.dict();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    document.add_pair(chain, document.integer(static_cast<std::int64_t>(i)), parts[i]);
  }
  const pickle::Value state = document.dict();
  document.set(state, "optimizer", chain);
  document.set(state, "args", document.object(document.global("argparse", "Namespace")));
  return CommonState::read(
             encode_torch_object(pickle::encode(document, state, pickle::Protocol::kTwo).value())
                 .value())
      .value();
}

// Megatron asks for {Muon, Muon of experts, Adam} where experts are sharded apart, else {Muon,
// Adam}; Lion, which has betas as Adam has, is no half of it.
TEST(CommonState, RegroupsOnlyOptimizersOfOneKind) {
  const std::vector<std::string> together = {"0 dense 0.5", "1 dense 0.25", "1 dense 0.25"};
  const std::vector<std::string> apart = {"0 dense 0.5", "1 expert 0.5", "2 dense 0.25",
                                          "2 dense 0.25"};
  for (const std::string_view main_setting : {"momentum", "betas"}) {
    SCOPED_TRACE(main_setting);
    for (const bool is_apart : {false, true}) {
      for (const bool wants_apart : {false, true}) {
        CommonStateEdits edits;
        edits.chain.experts_apart = wants_apart;
        std::vector<std::string> notes;
        const std::string made = chain_of(main_setting, is_apart).encode(edits, notes).value();
        EXPECT_EQ(groups_of_state(made), wants_apart ? apart : together);
        EXPECT_EQ(notes.size(), is_apart == wants_apart ? 0U : 1U);
      }
    }
  }
  CommonStateEdits edits;
  std::vector<std::string> notes;
  const std::string joined = chain_of("momentum", true, 0.125).encode(edits, notes).value();
  EXPECT_EQ(groups_of_state(joined), together) << "Muon has one group";
  // One that shares out whole layers has a group of experts' in the part of the others.
  const std::vector<std::string> inside = {"0 dense 0.5", "0 expert 0.5", "1 dense 0.25",
                                           "1 dense 0.25"};
  edits.chain.experts_apart = true;
  edits.arguments = {{"optimizer", std::string("dist_muon")}};
  const std::string layer_wise = chain_of("momentum", false).encode(edits, notes).value();
  EXPECT_EQ(groups_of_state(layer_wise), inside);
  edits.chain.experts_apart = false;
  EXPECT_EQ(groups_of_state(CommonState::read(layer_wise).value().encode(edits, notes).value()),
            together);
  // Files of ranks are not gone on with so.
  edits.chain.may_share_out_layers = false;
  EXPECT_EQ(groups_of_state(CommonState::read(layer_wise).value().encode(edits, notes).value()),
            together);
  edits.chain.experts_apart = true;
  EXPECT_EQ(groups_of_state(CommonState::read(layer_wise).value().encode(edits, notes).value()),
            apart);
}

// FP32Optimizer's dict is torch's own; and parts have no dict in common, which a load fills twice.
TEST(CommonState, RegroupsOptimizersOfFloat32) {
  pickle::Document document;
  const pickle::Value group = document.dict();
  document.set(group, "wd_mult", document.real(1.0));
  const pickle::Value states = document.dict();
  document.set(states, "common_step", document.real(10.0));
  const pickle::Value optimizer = document.dict();
  document.set(optimizer, "state", states);
  document.set(optimizer, "param_groups", document.list(std::array{group}));
  document.set(optimizer, "itself", optimizer);  // who writes a file may nest what he likes
  const pickle::Value state = document.dict();
  document.set(state, "optimizer", optimizer);
  document.set(state, "args", document.object(document.global("argparse", "Namespace")));
  const std::string bytes =
      encode_torch_object(pickle::encode(document, state, pickle::Protocol::kTwo).value()).value();
  CommonStateEdits edits;
  edits.chain.experts_apart = true;
  std::vector<std::string> notes;
  const std::string split = CommonState::read(bytes).value().encode(edits, notes).value();
  StateDocument made = StateDocument::read(split).value();
  const pickle::Value chain = made.dict().find("optimizer");
  const pickle::Value first = chain.find(std::int64_t{0});
  const pickle::Value second = chain.find(std::int64_t{1});
  EXPECT_EQ(first.find("param_groups").size(), 1U);
  EXPECT_EQ(second.find("param_groups")[0].find("is_expert_parallel").as_bool(), true);
  made.document().set(first.find("state"), "common_step", made.document().real(1.0));
  EXPECT_EQ(second.find("state").find("common_step").as_double(), 10.0);
  edits.chain.experts_apart = false;
  const std::string joined = CommonState::read(split).value().encode(edits, notes).value();
  StateDocument again = StateDocument::read(joined).value();
  EXPECT_EQ(again.dict().find("optimizer").find("param_groups").size(), 1U);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("split"), HasSubstr("joined")));
}

// What experts' groups say otherwise is kept where they are joined with the others, and is theirs
// where they are split off again.
TEST(CommonState, KeepsSettingsOfExperts) {
  StateDocument state = StateDocument::read(read_golden(kMoe)).value();
  const pickle::Value experts = state.dict().find("optimizer").find(std::int64_t{1});
  const pickle::Value group = experts.find("optimizer").find("param_groups")[0];
  state.document().set(group, "max_lr", state.document().real(0.25));
  const CommonState moe = CommonState::read(state.encode().value()).value();
  CommonStateEdits edits;
  std::vector<std::string> notes;
  const std::string joined = moe.encode(edits, notes).value();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("those of experts, which have other settings")));
  EXPECT_THAT(groups_of_state(joined),
              ElementsAre("all dense 0.001", "all dense 0.001", "all expert 0.25"));
  notes.clear();
  edits.chain.experts_apart = true;
  const std::string split = CommonState::read(joined).value().encode(edits, notes).value();
  EXPECT_THAT(groups_of_state(split),
              ElementsAre("0 dense 0.001", "0 dense 0.001", "1 expert 0.25"));
}

TEST(CommonState, NewOnesHoldTheArguments) {
  const std::string bytes = new_common_state({{"num_layers", std::int64_t{3}}}, 7, true).value();
  EXPECT_NE(bytes.find("non_homogeneous_layers"), std::string::npos);
  const CommonState state = CommonState::read(bytes).value();
  EXPECT_EQ(state.iteration(), 7);
  EXPECT_EQ(state.arguments(), (Arguments{{"num_layers", std::int64_t{3}}}));
}

// Python 3.11 pickles an enum's member by its name, which loaders of weights alone refuse.
TEST(CommonState, KeepsNoEnumThatIsPickledByName) {
  pickle::Document document;
  const auto member = [&](const char* module, const char* cls, const char* name) {
    const std::array<pickle::Value, 2> pair = {document.global(module, cls), document.string(name)};
    return document.reduce(document.global("builtins", "getattr"), document.tuple(pair));
  };
  const pickle::Value args = document.object(document.global("argparse", "Namespace"));
  document.set_attribute(args, "attention_backend",
                         member("megatron.core.transformer.enums", "AttnBackend", "auto"));
  document.set_attribute(args, "exit_signal", document.global("signal", "SIGTERM"));
  document.set_attribute(args, "path", member("os", "path", "join"));
  const pickle::Value state = document.dict();
  document.set(state, "args", args);
  document.set_root(state);
  const std::string pickled = pickle::encode(document, pickle::Protocol::kTwo).value();
  const CommonState common = CommonState::read(encode_torch_object(pickled).value()).value();
  std::vector<std::string> notes;
  const std::string encoded = common.encode({}, notes).value();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("args.attention_backend is stored as a plain value"),
                                 HasSubstr("args.exit_signal")));
  const Arguments arguments = CommonState::read(encoded).value().arguments();
  EXPECT_EQ(arguments.at("attention_backend"), ArgValue{std::string("auto")});
  EXPECT_EQ(arguments.at("exit_signal"), ArgValue{std::string("SIGTERM")});
  EXPECT_FALSE(arguments.contains("path")) << "what is no enum of Megatron's is carried as it is";
  EXPECT_NE(encoded.find("join"), std::string::npos);
}

TEST(CommonState, RefusesWhatIsNoDict) {
  EXPECT_EQ(CommonState::read(empty_extra_state().value()).error().code, Code::kStateUnreadable);
  EXPECT_FALSE(CommonState::read("no zip"));
}

class Locate : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        std::filesystem::temp_directory_path() / ("shardwright-locate-" + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text = "") const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

TEST_F(Locate, FollowsTheTracker) {
  put("latest_checkpointed_iteration.txt", "20\n");
  put("iter_0000020/.metadata");
  put("iter_0000020/metadata.json", R"({"sharded_backend": "torch_dist"})");
  put("iter_0000030/.metadata");
  const Location location = locate_checkpoint(root_.string() + "/").value();
  EXPECT_EQ(location.format, "torch_dist");
  EXPECT_EQ(location.iteration, 20);
  put("latest_checkpointed_iteration.txt", "21");
  EXPECT_EQ(locate_checkpoint(root_.string()).error().code, Code::kTrackerBroken);
  put("latest_checkpointed_iteration.txt", "../x");
  EXPECT_EQ(locate_checkpoint(root_.string()).error().code, Code::kTrackerBroken);
  put("latest_checkpointed_iteration.txt", "release");
  put("release/.metadata");
  EXPECT_FALSE(locate_checkpoint(root_.string()).value().iteration);
}

TEST_F(Locate, TakesTheLatestFolderWithoutATracker) {
  put("iter_0000005/.metadata");
  put("iter_0000012/.metadata");
  const Location location = locate_checkpoint(root_.string()).value();
  EXPECT_EQ(location.iteration, 12);
  EXPECT_EQ(location.format, "dcp");
}

TEST_F(Locate, KnowsFoldersOfRanks) {
  put("iter_0000003/mp_rank_00_001/model_optim_rng.pt");
  const Location location = locate_checkpoint(root_.string()).value();
  EXPECT_EQ(location.format, "legacy");
  EXPECT_EQ(location.iteration, 3);
}

TEST_F(Locate, NamesWhatItDoesNotRead) {
  const auto error = [&] {
    const auto location = locate_checkpoint(root_.string());
    return location ? Error{} : location.error();
  };
  EXPECT_EQ(error().code, Code::kUnknownFormat);
  put("expp_rank_0_mp_rank_00_optim_states.pt");
  EXPECT_EQ(error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(error().message, HasSubstr("DeepSpeed"));
  put(".metadata");
  put("metadata.json", R"({"sharded_backend": "zarr"})");
  EXPECT_EQ(locate_checkpoint(root_.string()).value().format, "zarr");
  EXPECT_EQ(locate_checkpoint((root_ / "gone").string()).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace shardwright
