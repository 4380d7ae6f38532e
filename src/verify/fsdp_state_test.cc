// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "dcp/torch_items.h"
#include "format/fsdp_dtensor/fsdp_steps.h"
#include "shardwright/verify.h"
#include "state/common_state.h"
#include "state/object_archive.h"
#include "state/state_document.h"
#include "verify/planted_fixture.h"

// Training states of Megatron-FSDP checkpoints, and of torch_dist ones on their way there and back:
// what belongs to whom, and what is not all there.

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kIterationFolder = "iter_0000010/";
constexpr const char* kDenseRun = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
constexpr const char* kRunWithExperts = "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full";
constexpr const char* kStateFile = "iter_0000010/common.pt";
const std::string kSettingsRoot = "optimizer.param_to_group_meta.module.module.module.";
const std::string kStatesRoot = "optimizer.state.module.module.module.";
const std::string kProjection = "decoder.layers.1.self_attention.linear_proj.weight";
const std::string kTable = "embedding.word_embeddings.weight";

using MakeValue = std::function<Value(Document&)>;

MakeValue real_value(double value) {
  return [=](Document& document) { return document.real(value); };
}
MakeValue whole_value(std::int64_t value) {
  return [=](Document& document) { return document.integer(value); };
}
MakeValue true_value() {
  return [](Document& document) { return document.boolean(true); };
}

std::string text_of_notes(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

class FsdpState : public testing::Test {
 protected:
  void plant(const char* golden = kDenseRun) const {
    ConvertRequest request;
    request.input = golden_path(golden);
    request.output = planted_.path();
    request.format = "fsdp_dtensor";
    const auto done = convert_now(request);
    ASSERT_TRUE(done) << done.error().text();
  }

  // As --megatron-fsdp-main-params-dtype bf16 has it, without states.
  void plant_rounded() const {
    ConvertRequest request;
    request.input = golden_path(kDenseRun);
    request.output = planted_.path();
    request.format = "fsdp_dtensor";
    request.dtype = DType::kBF16;
    request.optimizer = OptimizerPolicy::kDrop;
    ASSERT_TRUE(convert_now(request));
  }

  void edit(const std::function<void(Catalog&)>& edit) const {
    planted_.edit_metadata(edit, kIterationFolder);
  }

  void remove(const std::function<bool(const std::string&)>& is_gone) const {
    edit([&](Catalog& catalog) {
      std::erase_if(catalog.tensors, [&](const auto& each) { return is_gone(each.desc.name); });
      std::erase_if(catalog.objects, [&](const auto& each) { return is_gone(each.name); });
    });
  }

  // Replaces an object, or adds one.
  void set(const std::string& name, const MakeValue& make) const {
    Document document;
    const Value value = make(document);
    const std::string bytes =
        encode_torch_object(pickle::encode(document, value, pickle::Protocol::kTwo).value())
            .value();
    edit([&](Catalog& catalog) {
      const std::string file = kIterationFolder + catalog.files[0];
      const StoredObject object{name, 0, {planted_.get(file).size(), bytes.size()}};
      std::erase_if(catalog.objects, [&](const auto& each) { return each.name == name; });
      catalog.objects.push_back(object);
      planted_.append(file, bytes);
    });
  }

  void edit_groups(const std::function<void(Document&, Value, std::int64_t)>& edit) const {
    StateDocument state = StateDocument::read(planted_.get(kStateFile)).value();
    const Value optimizer = state.dict().find("optimizer");
    for (std::int64_t part = 0; part < 2; ++part) {
      const Value found = optimizer.find(part);
      const Value list = (found ? found : optimizer).find("optimizer").find("param_groups");
      for (std::size_t i = 0; i < list.size(); ++i) edit(state.document(), list[i], part);
    }
    planted_.put(kStateFile, state.encode().value());
  }

  [[nodiscard]] Result<PreparedConversion> convert(std::string_view format,
                                                   const std::string& input = "ckpt",
                                                   const std::string& output = "out",
                                                   std::int64_t expert = 1) const {
    ConvertRequest request;
    request.input = planted_.place() / input;
    request.output = planted_.place() / output;
    request.format = format;
    request.parallel.expert = expert;
    request.overwrite = true;
    return convert_now(request);
  }

  // What convert says, to a folder "out".
  [[nodiscard]] std::string told(std::string_view format) const {
    const auto done = convert(format);
    return done ? text_of_notes(done->notes) : done.error().text();
  }

  [[nodiscard]] Code refusal(std::string_view format) const {
    const auto done = convert(format);
    return done ? Code::kInternal : done.error().code;
  }

  [[nodiscard]] std::vector<Code> found() const {
    std::vector<Code> codes;
    const VerifyReport report = verify_checkpoint(planted_.path(), {}).value();
    for (const VerifyFinding& finding : report.findings) {
      if (finding.severity == Severity::kError) codes.push_back(finding.code);
    }
    return codes;
  }

  // A setting of a parameter in a Megatron-FSDP checkpoint.
  [[nodiscard]] std::optional<double> setting(const std::string& folder,
                                              const std::string& name) const {
    const Checkpoint checkpoint = open_checkpoint(planted_.place() / folder).value();
    const auto& objects = checkpoint.catalog.objects;
    const auto found = std::ranges::find(objects, kSettingsRoot + name, &StoredObject::name);
    if (found == objects.end()) return std::nullopt;
    return open_object(*found, *checkpoint.files).value().root().as_double();
  }

  [[nodiscard]] DType dtype_of(const std::string& folder, const std::string& parameter) const {
    const Checkpoint checkpoint = open_checkpoint(planted_.place() / folder).value();
    for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
      if (tensor.desc.name == "model.module." + parameter) return tensor.desc.dtype;
    }
    ADD_FAILURE() << parameter << " is missing";
    return DType::kBool;
  }

  [[nodiscard]] std::int64_t step(const std::string& folder, const std::string& parameter) const {
    Checkpoint checkpoint = open_checkpoint(planted_.place() / folder).value();
    EXPECT_TRUE(locate_items(checkpoint.catalog, *checkpoint.files));
    return read_fsdp_steps(checkpoint.catalog, *checkpoint.files)
        .value()
        .by_parameter.at(kSettingsRoot + parameter);
  }

  // The steps of the parameter groups in a torch_dist checkpoint.
  [[nodiscard]] std::vector<std::int64_t> group_steps(const std::string& folder) const {
    StateDocument state =
        StateDocument::read(planted_.place().get(folder + "/" + kStateFile)).value();
    const Value list = state.dict().find("optimizer").find("optimizer").find("param_groups");
    std::vector<std::int64_t> steps;
    for (std::size_t i = 0; i < list.size(); ++i) {
      steps.push_back(list[i].find("step").as_int().value_or(-1));
    }
    return steps;
  }

  Planted planted_;
};

TEST_F(FsdpState, KeepsEachParametersSettings) {
  plant();
  set(kSettingsRoot + kTable + ".max_lr", real_value(0.5));
  set(kSettingsRoot + kTable + ".wd_mult", real_value(0));
  ASSERT_TRUE(convert("fsdp_dtensor"));
  EXPECT_EQ(setting("out", kTable + ".max_lr"), 0.5);
  EXPECT_EQ(setting("out", kTable + ".wd_mult"), 0.0);
  EXPECT_EQ(setting("out", kProjection + ".max_lr"), setting("ckpt", kProjection + ".max_lr"));
  EXPECT_EQ(setting("out", kProjection + ".wd_mult"), 1.0);
}

TEST_F(FsdpState, KeepsTheTypeOfMainWeights) {
  plant_rounded();
  EXPECT_EQ(dtype_of("ckpt", kTable), DType::kBF16);
  EXPECT_THAT(told("fsdp_dtensor"), Not(HasSubstr("weights stay")));
  EXPECT_EQ(dtype_of("out", kTable), DType::kBF16);
  EXPECT_THAT(told("torch_dist"), HasSubstr("weights stay bfloat16, the main weights of "
                                            "Megatron-FSDP\n"));
}

TEST_F(FsdpState, SaysThatMainWeightsAreFloat32) {
  plant();
  EXPECT_THAT(told("torch_dist"), HasSubstr("weights stay float32, the main weights of "
                                            "Megatron-FSDP; --dtype bfloat16"));
}

TEST_F(FsdpState, GivesTablesTheRateOfTheirOwn) {
  plant();
  for (const std::string& name : {kTable, std::string("output_layer.weight")}) {
    set(kSettingsRoot + name + ".max_lr", real_value(0.5));
    set(kSettingsRoot + name + ".is_decoupled_lr", true_value());
  }
  ASSERT_TRUE(convert("torch_dist", "ckpt", "mcore"));
  const auto done = convert("fsdp_dtensor", "mcore");
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(setting("out", kTable + ".max_lr"), 0.5);
  EXPECT_EQ(setting("out", "output_layer.weight.max_lr"), 0.5);
  EXPECT_EQ(setting("out", kProjection + ".max_lr"), setting("ckpt", kProjection + ".max_lr"));
}

TEST_F(FsdpState, RefusesGroupsThatNothingTellsApart) {
  plant();
  EXPECT_THAT(told("torch_dist"), Not(HasSubstr("the same kind of parameters")));
  set(kSettingsRoot + kProjection + ".max_lr", real_value(0.5));
  EXPECT_THAT(told("torch_dist"), HasSubstr("groups 0 and 1 are for the same kind of parameters"));
  EXPECT_THAT(told("fsdp_dtensor"), Not(HasSubstr("the same kind of parameters")));
  ASSERT_TRUE(convert("torch_dist", "ckpt", "mcore"));
  const auto refused = convert("fsdp_dtensor", "mcore");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("alike"));
}

TEST_F(FsdpState, KeepsSettingsAndStepsOfExperts) {
  Planted::copy(kRunWithExperts, planted_);
  edit_groups([](Document& document, Value group, std::int64_t part) {
    document.set(group, "max_lr", document.real(part == 1 ? 0.3 : 0.1));
    document.set(group, "step", document.integer(part == 1 ? 102 : 100));
  });
  EXPECT_THAT(told("fsdp_dtensor"), HasSubstr("those of experts, which have other settings"));
  const std::string expert = "decoder.layers.0.mlp.experts.linear_fc2.weight0";
  const std::string dense = "decoder.layers.0.self_attention.linear_proj.weight";
  EXPECT_EQ(setting("out", expert + ".max_lr"), 0.3);
  EXPECT_EQ(setting("out", dense + ".max_lr"), 0.1);
  EXPECT_EQ(step("out", expert), 102);
  EXPECT_EQ(step("out", dense), 100);
  const auto done = convert("torch_dist", "out", "back", 1);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(text_of_notes(done->notes), Not(HasSubstr("differ in their steps")));
  EXPECT_THAT(group_steps("back"), UnorderedElementsAre(100, 100, 102));
  ASSERT_TRUE(convert("fsdp_dtensor", "out", "again"));
  EXPECT_EQ(setting("again", expert + ".max_lr"), 0.3);
}

// As Megatron-Core 0.15 counts them.
TEST_F(FsdpState, KeepsStepsThatAreWholeFloats) {
  Planted::copy(kDenseRun, planted_);
  edit_groups([](Document& document, Value group, std::int64_t) {
    document.set(group, "step", document.real(100.0));
  });
  ASSERT_TRUE(convert("fsdp_dtensor"));
  EXPECT_EQ(step("out", kProjection), 100);
}

TEST_F(FsdpState, MissesMoments) {
  plant();
  EXPECT_THAT(found(), IsEmpty());
  remove([](const std::string& name) { return name == kStatesRoot + kProjection + ".exp_avg_sq"; });
  EXPECT_THAT(found(), ElementsAre(Code::kOptimizerUnsupported));
  EXPECT_THAT(told("torch_dist"), HasSubstr("expected exp_avg, exp_avg_sq, param as of"));
  EXPECT_EQ(refusal("torch_dist"), Code::kOptimizerUnsupported);
  EXPECT_EQ(refusal("dcp"), Code::kOptimizerUnsupported);
  EXPECT_TRUE(convert("hf"));
  ConvertRequest request;
  request.input = planted_.path();
  request.output = planted_.place() / "dropped";
  request.format = "torch_dist";
  request.optimizer = OptimizerPolicy::kDrop;
  EXPECT_TRUE(convert_now(request));
  EXPECT_THAT(text_of_notes(hash_checkpoint(planted_.path(), {}).value().notes),
              HasSubstr("expected exp_avg, exp_avg_sq, param as of"));
}

TEST_F(FsdpState, TellsFrozenParameters) {
  plant();
  remove([](const std::string& name) { return name.starts_with(kStatesRoot + kProjection); });
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(told("torch_dist"),
              HasSubstr("without optimizer states (1, " + kProjection + " the first)"));
}

TEST_F(FsdpState, RefusesStatesOfNothing) {
  plant();
  edit([](Catalog& catalog) {
    tensor_of(catalog, kStatesRoot + kProjection + ".exp_avg").desc.name =
        kStatesRoot + "decoder.layers.1.foo.weight.exp_avg";
  });
  EXPECT_THAT(found(), Contains(Code::kOptimizerUnsupported));
  EXPECT_EQ(refusal("fsdp_dtensor"), Code::kStateUnreadable) << "nor has it settings";
}

TEST_F(FsdpState, TakesTheIterationWhereNoStepIsKept) {
  plant();
  remove([](const std::string& name) { return name.ends_with(".step"); });
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(told("torch_dist"), HasSubstr("have no step: the iteration, 10, is taken"));
  EXPECT_THAT(group_steps("out"), ElementsAre(10, 10));
  remove([](const std::string& name) { return name == "iteration"; });
  EXPECT_EQ(refusal("torch_dist"), Code::kStateUnreadable);
}

TEST_F(FsdpState, ReadsStepsThatAreObjects) {
  plant();
  remove([](const std::string& name) { return name.ends_with(".step"); });
  set(kStatesRoot + kProjection + ".step", whole_value(7));
  EXPECT_THAT(told("torch_dist"), Not(HasSubstr("left out: optimizer")));
  EXPECT_THAT(group_steps("out"), ElementsAre(7, 10));
  set(kStatesRoot + kProjection + ".step", real_value(0.5));
  EXPECT_THAT(found(), ElementsAre(Code::kStateUnreadable));
  EXPECT_EQ(refusal("torch_dist"), Code::kStateUnreadable);
  const auto report = diff_checkpoints(planted_.path(), planted_.path(), {}, std::nullopt);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->verdict(), "NOT ALL COMPARED");
  EXPECT_THAT(text_of_notes(report->notes), HasSubstr("its settings of training are not compared"));
}

TEST_F(FsdpState, MissesSettings) {
  plant();
  remove([](const std::string& name) { return name.starts_with(kSettingsRoot + kProjection); });
  EXPECT_THAT(found(), ElementsAre(Code::kStateUnreadable));
  EXPECT_EQ(refusal("torch_dist"), Code::kStateUnreadable);
  EXPECT_EQ(refusal("fsdp_dtensor"), Code::kStateUnreadable);
  EXPECT_TRUE(convert("hf"));
}

TEST_F(FsdpState, TellsWhatItLeavesOut) {
  plant();
  set("rerun_state_machine", whole_value(1));
  set("foo.bar", whole_value(1));
  EXPECT_THAT(told("torch_dist"), HasSubstr("left out: rerun_state_machine, foo.bar\n"));
  remove([](const std::string& name) { return name == "args"; });
  EXPECT_THAT(told("torch_dist"), HasSubstr("the run's arguments (args)"));
}

TEST_F(FsdpState, RefusesObjectsWithNamesOfTensors) {
  for (const std::string& name :
       {kStatesRoot + kProjection + ".exp_avg", std::string("model.module.") + kProjection}) {
    planted_.remove("");
    plant();
    remove([&](const std::string& each) { return each == name; });
    set(name, whole_value(1));
    EXPECT_THAT(found(), Contains(Code::kUnmatchedSource)) << name;
    EXPECT_FALSE(convert("torch_dist")) << name;
  }
}

TEST_F(FsdpState, RefusesASettingThatIsThereTwice) {
  plant();
  set("optimizer.1.param_to_group_meta.module.module.module." + kProjection + ".max_lr",
      real_value(7));
  EXPECT_THAT(found(), ElementsAre(Code::kDuplicateName));
  EXPECT_EQ(refusal("torch_dist"), Code::kDuplicateName);
}

TEST_F(FsdpState, IsOfTheFoldersIteration) {
  plant();
  EXPECT_THAT(verify_checkpoint(planted_.path(), {}).value().proven,
              Contains(testing::Field(&Phrase::english, HasSubstr("of iteration 10"))));
  set("iteration", whole_value(20));
  EXPECT_THAT(found(), ElementsAre(Code::kIterationMismatch));
  EXPECT_THAT(told("torch_dist"), HasSubstr("found iteration 20 in its state, and 10"));
  remove([](const std::string& name) { return name == "iteration"; });
  EXPECT_THAT(text_of_notes(verify_checkpoint(planted_.path(), {}).value().notes),
              HasSubstr("does not say which iteration"));
  EXPECT_THAT(told("torch_dist"), HasSubstr("which iteration it is of: 10 is written"));
  const std::string state = planted_.place().get(std::string("out/") + kStateFile);
  EXPECT_EQ(CommonState::read(state).value().iteration(), 10);
}

// States of torch_dist.
class TorchDistStates : public FsdpState {};

TEST_F(TorchDistStates, MissStacks) {
  for (const std::string& kind : {std::string("param"), std::string("exp_avg_sq")}) {
    const Planted planted;
    Planted::copy(kDenseRun, planted);
    planted.edit_metadata(
        [&](Catalog& catalog) {
          std::erase_if(catalog.tensors, [&](const StoredTensor& tensor) {
            return tensor.desc.name ==
                   "optimizer.state." + kind + ".decoder.layers.mlp.linear_fc2.weight";
          });
        },
        kIterationFolder);
    const auto report = verify_checkpoint(planted.path(), {}).value();
    EXPECT_TRUE(std::ranges::any_of(report.findings, [](const VerifyFinding& finding) {
      return finding.code == Code::kOptimizerUnsupported;
    })) << kind;
    ConvertRequest request;
    request.input = planted.path();
    request.output = planted.place() / "out";
    request.format = "torch_dist";
    EXPECT_EQ(convert_now(request).error().code, Code::kOptimizerUnsupported) << kind;
  }
}

TEST_F(TorchDistStates, MissMomentsInBuckets) {
  Planted::copy("mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket", planted_);
  EXPECT_THAT(found(), IsEmpty());
  remove([](const std::string& name) { return name.ends_with(".exp_avg_sq"); });
  EXPECT_THAT(found(), ElementsAre(Code::kOptimizerUnsupported));
  EXPECT_EQ(refusal("torch_dist"), Code::kOptimizerUnsupported);
}

TEST_F(TorchDistStates, AreWholeInGoldenCheckpoints) {
  for (const char* golden :
       {kDenseRun, kRunWithExperts, "mcore/dense_te/v0.20.0dev/tp2pp1dp2-torch_dist-full",
        "mcore/gpt2_te/v0.20.0dev/tp1pp2-torch_dist-full",
        "mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero",
        "mcore/dense/v0.15.3/tp2pp2-torch_dist-modelspace"}) {
    const auto report = verify_checkpoint(golden_path(golden), {}).value();
    EXPECT_FALSE(report.has_errors()) << golden;
    EXPECT_THAT(text_of_notes(report.notes), Not(HasSubstr("without optimizer states"))) << golden;
  }
}

}  // namespace
}  // namespace shardwright
