// SPDX-License-Identifier: Apache-2.0
// A MIMO checkpoint of a training run, whose components have optimizers of their own: names as
// Megatron-Core's MimoOptimizer gives them, in a torch_dist directory made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/golden.h"
#include "format/component_optimizers.h"
#include "format/torch_dist/torch_dist_target.h"
#include "io/source_files.h"
#include "layout/component_spec.h"
#include "model/component_names.h"
#include "state/common_state.h"
#include "state/component_groups_fixture.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kLanguage = "language_model.";
constexpr const char* kImagesRoot = "modality_submodules.images.";

const std::vector<GroupFacts> kGroups = {{.wd_mult = 1.0}, {.wd_mult = 0.0}};

// Component and name of a training run for a name of a checkpoint that was converted.
std::pair<std::string, std::string> in_training(const std::string& name) {
  const bool is_language = name.starts_with(kLanguage);
  const std::string root = is_language ? kLanguage : kImagesRoot;
  return {is_language ? "language" : "images", root + "module." + name.substr(root.size())};
}

class MimoTraining : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(convert_now(request(golden_path("hf/qwen3_vl/hf"), "weights",
                                    {"language=tp=1", "images=tp=1"}, OptimizerPolicy::kDrop)));
    ASSERT_NO_FATAL_FAILURE(write_training(out_ / "weights", "training"));
  }

  ConvertRequest request(const std::string& input, const std::string& output,
                         const std::vector<std::string>& components, OptimizerPolicy optimizer) {
    ConvertRequest request;
    request.input = input;
    request.output = out_ / output;
    request.format = "mimo";
    request.components = parse_components(components).value();
    request.optimizer = optimizer;
    request.hf_config_dir = golden_path("hf/qwen3_vl/hf");
    return request;
  }

  // The same weights as a run would save them: wrapped, with two moments and a master weight each.
  void write_training(const std::string& weights, const std::string& name,
                      const std::vector<GroupFacts>& images = kGroups) {
    std::vector<TensorDesc> descs;
    const Catalog stored = open_checkpoint(weights).value().catalog;
    for (const StoredTensor& tensor : stored.tensors) {
      const auto [component, wrapped] = in_training(tensor.desc.name);
      descs.push_back({wrapped, tensor.desc.dtype, tensor.desc.shape});
      for (const char* state : {"exp_avg", "exp_avg_sq", "param"}) {
        descs.push_back({"mimo." + component + ".optimizer.state." + state + "." + wrapped,
                         DType::kF32, tensor.desc.shape});
      }
    }
    put_model(out_ / (name + "-names"), "", descs);

    PreparedConversion conversion;
    conversion.source = open_checkpoint(out_ / (name + "-names")).value();
    conversion.request.input = out_ / (name + "-names");
    conversion.request.output = out_ / name;
    TargetParts parts;
    parts.tensors = draft_identity(conversion.source.catalog, {});
    for (const char* component : {"language", "images"}) {
      const bool is_language = component == std::string("language");
      parts.new_objects.emplace_back(
          groups_of(component),
          std::make_shared<const std::string>(groups_entry(is_language ? kGroups : images)));
      parts.new_objects.emplace_back(std::string("rng_state.") + component + "/shard_0.0_1.1",
                                     std::make_shared<const std::string>("state"));
    }
    parts.common_state = new_common_state({}, 3, false).value();
    parts.tracker = "3";
    parts.folder = "iter_0000003/";
    conversion.plan.source = conversion.source.catalog;
    const PlacedParts placed = place_parts(parts, {}).value();
    ASSERT_TRUE(plan_torch_dist(parts, placed, conversion.plan));
    ASSERT_TRUE(run_conversion(conversion, {}));
  }

  static std::string groups_of(const std::string& component) {
    return "mimo." + component + ".optimizer.mimo." + component + ".param_groups/shard_0_1";
  }

  // Bytes of an opaque entry; empty where there is none.
  std::string object(const std::string& checkpoint, const std::string& name) {
    const Checkpoint opened = open_checkpoint(out_ / checkpoint).value();
    for (const StoredObject& object : opened.catalog.objects) {
      if (object.name != name) continue;
      std::string bytes(static_cast<std::size_t>(object.range.length), '\0');
      EXPECT_TRUE(opened.files->read_at(object.file, object.range.offset,
                                        std::as_writable_bytes(std::span(bytes))));
      return bytes;
    }
    return {};
  }

  ConvertRequest ordinary_request(const std::string& output, OptimizerPolicy optimizer) {
    ConvertRequest request = this->request(out_ / "training", output, {}, optimizer);
    request.format = "torch_dist";
    request.parallel = {2, 1, 1, 1, 2};
    return request;
  }

  // A name of the training run as an ordinary run has it.
  static std::string ordinary_name(const std::string& name) {
    std::string plain = name;
    if (plain.starts_with("mimo.")) plain = plain.substr(plain.find(".optimizer.") + 1);
    for (const auto& [theirs, ours] :
         {std::pair{"language_model.module.", kLanguage},
          std::pair{"modality_submodules.images.module.encoders.qwen_visual.", "vision_model."}}) {
      const std::size_t at = plain.find(theirs);
      if (at != std::string::npos) plain.replace(at, std::string(theirs).size(), ours);
    }
    return plain;
  }

  TemporaryFolder out_;
  const std::vector<std::string> other_layout_ = {"images=tp=2", "language=tp=2,pp=3"};
};

TEST_F(MimoTraining, GoesOnAtAnotherLayout) {
  const auto resharded =
      convert_now(request(out_ / "training", "resharded", other_layout_, OptimizerPolicy::kKeep));
  ASSERT_TRUE(resharded) << resharded.error().text();
  const TensorMap expected = read_all_tensors(out_ / "training").value();
  EXPECT_EQ(difference(read_all_tensors(out_ / "resharded").value(), expected), "");
  for (const char* component : {"language", "images"}) {
    EXPECT_EQ(object("resharded", groups_of(component)), groups_entry(kGroups));
    EXPECT_EQ(object("training", std::string("rng_state.") + component + "/shard_0.0_1.1"),
              "state");
    EXPECT_EQ(object("resharded", std::string("rng_state.") + component + "/shard_0.0_1.1"), "");
  }
  EXPECT_THAT(resharded->notes, Contains(HasSubstr("2 RNG and rerun states are dropped")));
  // And again from there: nothing depends on how it was cut.
  ASSERT_TRUE(convert_now(request(out_ / "resharded", "back", {"language=tp=1", "images=tp=1"},
                                  OptimizerPolicy::kKeep)));
  EXPECT_EQ(difference(read_all_tensors(out_ / "back").value(), expected), "");
}

// Where a tensor's pieces lie, its states' pieces lie too.
TEST_F(MimoTraining, KeepsStatesBesideTheirTensors) {
  ASSERT_TRUE(
      convert_now(request(out_ / "training", "resharded", other_layout_, OptimizerPolicy::kKeep)));
  const Catalog catalog = open_checkpoint(out_ / "resharded").value().catalog;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> places;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const std::string& file = catalog.files[tensor.chunks.file(i)];
      places[tensor.desc.name].emplace_back(to_string(tensor.chunks.box(i)),
                                            file.substr(0, file.rfind('_')));
    }
    std::ranges::sort(places[tensor.desc.name]);
  }
  std::size_t cut = 0;
  for (const auto& [name, chunks] : places) {
    if (name.starts_with("mimo.")) continue;
    const std::string component = name.starts_with(kLanguage) ? "language" : "images";
    EXPECT_EQ(chunks, places.at("mimo." + component + ".optimizer.state.exp_avg." + name)) << name;
    cut += chunks.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(cut, 20U);
}

TEST_F(MimoTraining, LeavesStatesOutByDefaultAndSaysSo) {
  const auto plain =
      convert_now(request(out_ / "training", "plain", other_layout_, OptimizerPolicy::kDefault));
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_THAT(plain->notes, Contains(HasSubstr("optimizer tensors are dropped")));
  EXPECT_EQ(read_all_tensors(out_ / "plain").value().size(),
            read_all_tensors(out_ / "weights").value().size());
  EXPECT_EQ(object("plain", groups_of("language")), "");
}

TEST_F(MimoTraining, BecomesAnOrdinaryRun) {
  const auto converted = convert_now(ordinary_request("ordinary", OptimizerPolicy::kKeep));
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes, Contains("the optimizers of images, language become one"));
  const TensorMap training = read_all_tensors(out_ / "training").value();
  TensorMap expected;
  for (const auto& [name, tensor] : training) expected.emplace(ordinary_name(name), tensor);
  EXPECT_EQ(difference(read_all_tensors(out_ / "ordinary").value(), expected), "");
  EXPECT_THAT(lines_of_state(out_.get("ordinary/iter_0000003/common.pt")),
              ElementsAre("wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=0",
                          "wd_mult=0 step=3 lr=0.001 max_lr=0.002 expert=0"));
  const Catalog catalog = open_checkpoint(out_ / "ordinary").value().catalog;
  for (const StoredObject& object : catalog.objects) {
    EXPECT_FALSE(object.name.starts_with("mimo.")) << object.name;
  }
}

TEST_F(MimoTraining, ComesBackFromAnOrdinaryRun) {
  ASSERT_TRUE(convert_now(ordinary_request("ordinary", OptimizerPolicy::kKeep)));
  const auto back =
      convert_now(request(out_ / "ordinary", "back", other_layout_, OptimizerPolicy::kKeep));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_THAT(back->notes, Contains(HasSubstr("language, images get an optimizer each")));
  const TensorMap training = read_all_tensors(out_ / "training").value();
  EXPECT_EQ(difference(read_all_tensors(out_ / "back").value(), training), "");
  for (const char* component : {"language", "images"}) {
    EXPECT_THAT(lines_of_entry(object("back", groups_of(component))),
                ElementsAre("wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=0 params=0",
                            "wd_mult=0 step=3 lr=0.001 max_lr=0.002 expert=0 params=0"));
  }
  EXPECT_THAT(lines_of_state(out_.get("back/iter_0000003/common.pt")), IsEmpty());
  // An ordinary run's states are dropped unless they are asked for, and then names stay plain.
  ASSERT_TRUE(
      convert_now(request(out_ / "ordinary", "plain", other_layout_, OptimizerPolicy::kDefault)));
  TensorMap plain;
  for (const auto& [name, tensor] : training) {
    if (!name.starts_with("mimo.")) plain.emplace(without_wrappers(name), tensor);
  }
  EXPECT_EQ(difference(read_all_tensors(out_ / "plain").value(), plain), "");
}

// As LLaVA's, whose projector is no part of the encoder.
TEST_F(MimoTraining, OfATowerAndItsProjectorHasOneOptimizerForBoth) {
  ASSERT_TRUE(convert_now(ordinary_request("ordinary", OptimizerPolicy::kKeep)));
  const std::vector<ComponentRoute> routes = {
      {"language", kLanguage, kLanguage},
      {"images", "vision_model.", "modality_submodules.images.encoders.clip_encoder."},
      {"images", "vision_projection.", "modality_submodules.images.input_projections.0."}};
  TargetParts parts;
  parts.common_state = out_.get("ordinary/iter_0000003/common.pt");
  parts.tensors.emplace_back().desc = {"optimizer.state.exp_avg.vision_model.x", DType::kF32, {4}};
  std::vector<std::string> notes;
  ASSERT_TRUE(share_optimizer(routes, parts, notes));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : parts.new_objects) names.push_back(name);
  const std::string images = "mimo.images.optimizer.mimo.images.";
  const std::string language = "mimo.language.optimizer.mimo.language.";
  EXPECT_THAT(names, ElementsAre(language + "param_groups/shard_0_1",
                                 language + "param_state_sharding_type/shard_0_1",
                                 images + "param_groups/shard_0_1",
                                 images + "param_state_sharding_type/shard_0_1"));
  EXPECT_THAT(notes, Contains(HasSubstr("language, images get an optimizer each")));
}

TEST_F(MimoTraining, IsNoOrdinaryRunWhereComponentsDisagree) {
  ASSERT_NO_FATAL_FAILURE(
      write_training(out_ / "weights", "uneven", {{.wd_mult = 1.0, .step = 4}}));
  ConvertRequest request = ordinary_request("x", OptimizerPolicy::kKeep);
  request.input = out_ / "uneven";
  const auto refused = prepare_conversion(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerMismatch);
  EXPECT_THAT(refused.error().message, HasSubstr(groups_of("images")));
  request.optimizer = OptimizerPolicy::kDrop;
  EXPECT_TRUE(prepare_conversion(request));
}

TEST_F(MimoTraining, NeedsGroupsOfEachComponentThatHasStates) {
  ConvertRequest request = ordinary_request("x", OptimizerPolicy::kKeep);
  Checkpoint source = open_checkpoint(out_ / "training").value();
  std::erase_if(source.catalog.objects,
                [&](const auto& object) { return object.name == groups_of("images"); });
  std::vector<std::string> notes;
  const auto refused = join_optimizers(source, notes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("no parameter groups of images"));
  // Without states there is nothing to lose.
  request.input = out_ / "weights";
  EXPECT_TRUE(prepare_conversion(request));
}

// Its master weights are called otherwise, and its step is not in the groups.
TEST_F(MimoTraining, OfAnotherOptimizerIsRefusedByName) {
  Checkpoint source = open_checkpoint(out_ / "training").value();
  const auto weight = std::ranges::find_if(source.catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.starts_with("mimo.language.optimizer.state.param.");
  });
  ASSERT_NE(weight, source.catalog.tensors.end());
  std::string& name = weight->desc.name;
  name.replace(name.find("state.param."), 12, "state.fp32_param.");
  std::vector<std::string> notes;
  const auto refused = join_optimizers(source, notes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("tensor " + name));

  TargetParts parts;
  parts.tensors.emplace_back().desc = {
      "chained_0.optimizer.state.exp_avg.decoder.x", DType::kF32, {4}};
  const auto back = share_optimizer({}, parts, notes);
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message,
              HasSubstr("tensor chained_0.optimizer.state.exp_avg.decoder.x"));
}

TEST_F(MimoTraining, OfBucketsIsRefusedByName) {
  const Catalog stored = open_checkpoint(out_ / "weights").value().catalog;
  std::vector<TensorDesc> descs;
  for (const StoredTensor& tensor : stored.tensors) descs.push_back(tensor.desc);
  const std::string bucket =
      "mimo.language.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_x.bucket_idx_0.exp_avg";
  descs.push_back({bucket, DType::kF32, {64}});
  put_model(out_ / "buckets", "", descs);
  ConvertRequest request =
      this->request(out_ / "buckets", "x", other_layout_, OptimizerPolicy::kKeep);
  const auto refused = prepare_conversion(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr(bucket));
}

// States that are pickled whole are cut for one rank too; parameter groups are for all.
TEST(ComponentStates, OfPickledBuffersAreRefusedByName) {
  const std::string groups =
      "mimo.language.optimizer.distributed.dp_group_idx_0.optimizer/shard_0_1";
  const std::string states =
      "mimo.language.optimizer.distributed.dp_group_idx_0.param_state/shard_0_1";
  Catalog catalog;
  catalog.objects.emplace_back().name = groups;
  EXPECT_TRUE(check_component_states(catalog));
  catalog.objects.emplace_back().name = states;
  const Status refused = check_component_states(catalog);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("entry " + states + ": found a flat buffer"));
}

}  // namespace
}  // namespace shardwright
