// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "layout/component_spec.h"
#include "state/common_state.h"
#include "verify/planted_fixture.h"

// Arguments and config.json that are not those of the tensors: verify lists them, convert refuses
// to repeat them.

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kState = "iter_0000000/common.pt";

std::vector<std::string> objects_of(const std::string& path, Code code) {
  const auto report = verify_checkpoint(path, {});
  if (!report) return {report.error().text()};
  std::vector<std::string> objects;
  for (const VerifyFinding& finding : report->findings) {
    if (finding.code == code && finding.severity == Severity::kError) {
      objects.push_back(finding.object);
    }
  }
  return objects;
}

class Contradiction : public testing::Test {
 protected:
  void SetUp() override {
    Planted::convert("hf/llama3/hf", "torch_dist", {.tensor = 2}, planted_.path());
  }

  void set(const std::string& name, const ArgValue& value) const {
    const CommonState state = CommonState::read(planted_.get(kState)).value();
    std::vector<std::string> notes;
    CommonStateEdits edits;
    edits.arguments.emplace_back(name, value);
    planted_.put(kState, state.encode(edits, notes).value());
  }

  void forget_config() const { planted_.remove("iter_0000000/hf"); }

  [[nodiscard]] ConvertRequest request(std::string_view format) const {
    ConvertRequest request;
    request.input = planted_.path();
    request.output = planted_.place() / "out";
    request.format = format;
    return request;
  }

  [[nodiscard]] Error refusal(std::string_view format) const {
    const auto prepared = prepare_conversion(request(format));
    return prepared ? Error{Code::kInternal, "it was planned", 0} : prepared.error();
  }

  Planted planted_;
};

TEST_F(Contradiction, IsFoundWithAFamilyAndWithout) {
  EXPECT_THAT(objects_of(planted_.path(), Code::kArgumentsContradict), IsEmpty());
  set("num_query_groups", std::int64_t{4});
  EXPECT_THAT(objects_of(planted_.path(), Code::kArgumentsContradict),
              ElementsAre("num_query_groups"));
  forget_config();
  set("swiglu", false);
  EXPECT_THAT(objects_of(planted_.path(), Code::kArgumentsContradict),
              ElementsAre("num_query_groups", "swiglu"));
}

TEST_F(Contradiction, IsDeniedOnlyOfArgumentsThatTensorsSpeakOf) {
  constexpr const char* kProven = "the run's arguments are those of these tensors";
  const auto before = verify_checkpoint(planted_.path(), {});
  ASSERT_TRUE(before);
  EXPECT_THAT(
      before->proven,
      testing::Contains(testing::Field(
          &Phrase::english, testing::ContainsRegex(std::string(kProven) + ": [1-9][0-9]+ of"))));
  // Of a state that says nothing of the model.
  const CommonState state = CommonState::read(planted_.get(kState)).value();
  std::vector<std::string> notes;
  CommonStateEdits edits;
  const Checkpoint checkpoint = open_checkpoint(planted_.path()).value();
  for (const auto& [name, value] : checkpoint.arguments) {
    edits.arguments.emplace_back(name, ArgValue{});
  }
  planted_.put(kState, state.encode(edits, notes).value());
  const auto after = verify_checkpoint(planted_.path(), {});
  ASSERT_TRUE(after);
  EXPECT_THAT(
      after->proven,
      testing::Not(testing::Contains(testing::Field(&Phrase::english, HasSubstr(kProven)))));
  EXPECT_THAT(after->notes, testing::Contains(HasSubstr("the run's arguments say nothing that")));
}

// As after training on with another rope or norm than the config.json beside it says.
TEST_F(Contradiction, OfConfigAndArgumentsThatNoTensorShowsIsTold) {
  set("rotary_base", std::int64_t{500000});
  const auto told = HasSubstr("rotary_base = 500000 (config.json: ");
  const auto prepared = prepare_conversion(request("hf"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes, testing::Contains(told));
  const auto report = verify_checkpoint(planted_.path(), {});
  ASSERT_TRUE(report);
  EXPECT_THAT(
      report->findings,
      ElementsAre(testing::AllOf(testing::Field(&VerifyFinding::code, Code::kArgumentsContradict),
                                 testing::Field(&VerifyFinding::severity, Severity::kWarning),
                                 testing::Field(&VerifyFinding::message, told))));
}

TEST_F(Contradiction, OfWhatNoConfigOfTheFamilySaysIsTold) {
  set("final_logit_softcapping", 30.0);
  const auto told = testing::Contains(testing::AllOf(HasSubstr("config.json is not held against"),
                                                     HasSubstr("final_logit_softcapping = 30")));
  const auto prepared = prepare_conversion(request("hf"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes, told);
  const auto report = verify_checkpoint(planted_.path(), {});
  ASSERT_TRUE(report);
  EXPECT_THAT(report->notes, told);
}

// Of the same shapes, with twice as many heads of half the size.
TEST_F(Contradiction, OfHeadsIsRefused) {
  set("num_attention_heads", std::int64_t{8});
  set("num_query_groups", std::int64_t{4});
  set("kv_channels", std::int64_t{8});
  const Error error = refusal("hf");
  EXPECT_EQ(error.code, Code::kArgumentsContradict);
  EXPECT_THAT(error.message, HasSubstr("num_attention_heads = 8 (config.json: 4)"));
  EXPECT_THAT(objects_of(planted_.path(), Code::kArgumentsContradict), testing::SizeIs(1));
}

TEST_F(Contradiction, OfTokensThatWouldBeCutOffIsRefused) {
  constexpr const char* kConfig = "iter_0000000/hf/config.json";
  auto config = nlohmann::json::parse(planted_.get(kConfig));
  const std::int64_t rows = config.at("vocab_size").get<std::int64_t>();
  set("padded_vocab_size", rows);
  set("vocab_size", rows - 3);
  set("tokenizer_type", std::string("HuggingFaceTokenizer"));
  EXPECT_TRUE(prepare_conversion(request("hf")));
  config["vocab_size"] = rows - 4;
  planted_.put(kConfig, config.dump());
  const Error error = refusal("hf");
  EXPECT_EQ(error.code, Code::kArgumentsContradict);
  EXPECT_THAT(error.message, HasSubstr("the rest of which would be lost"));
  EXPECT_THAT(objects_of(planted_.path(), Code::kArgumentsContradict), testing::SizeIs(1));
}

TEST_F(Contradiction, OfTokensOfAProviderIsRefusedWithoutATokenizer) {
  constexpr const char* kConfig = "iter_0000000/hf/config.json";
  auto config = nlohmann::json::parse(planted_.get(kConfig));
  const std::int64_t rows = config.at("vocab_size").get<std::int64_t>();
  config["vocab_size"] = rows - 4;
  planted_.put(kConfig, config.dump());
  set("vocab_size", rows);
  set("tokenizer_type", std::string("NullTokenizer"));
  EXPECT_TRUE(prepare_conversion(request("hf"))) << "one of them may be no token";
  set("should_pad_vocab", false);
  EXPECT_THAT(refusal("hf").message, HasSubstr("the rest of which would be lost"));
}

TEST_F(Contradiction, IsToldWhereItGoesAlong) {
  set("ffn_hidden_size", std::int64_t{7});
  for (const std::string_view format : {"torch_dist", "legacy"}) {
    const auto prepared = prepare_conversion(request(format));
    ASSERT_TRUE(prepared) << prepared.error().text();
    EXPECT_THAT(prepared->notes, testing::Contains(testing::AllOf(
                                     HasSubstr("argument ffn_hidden_size is 7, but tensor "
                                               "decoder.layers.0.mlp.linear_fc2.weight (64, 96) "
                                               "shows 96"),
                                     HasSubstr("--hf-config"))));
  }
}

// The argument, what it says, what the tensors show, and the way out.
constexpr auto kNames = [](const char* argument, const char* shown) {
  return testing::Contains(testing::AllOf(HasSubstr(argument), HasSubstr(shown),
                                          HasSubstr("the target repeats it; with the model's true "
                                                    "config.json (--hf-config)")));
};

TEST_F(Contradiction, IsToldOfSourcesOfEveryFormat) {
  set("ffn_hidden_size", std::int64_t{7});
  for (const std::string_view format : {"torch_dist", "legacy", "fsdp_dtensor"}) {
    ConvertRequest first = request(format);
    first.output += format;
    ASSERT_TRUE(convert_now(first));
    for (const std::vector<std::string>& left_out :
         {{}, std::vector<std::string>{"*output_layer*"}}) {
      ConvertRequest again = request("torch_dist");
      again.input = first.output;
      again.exclude = left_out;
      const auto prepared = prepare_conversion(again);
      ASSERT_TRUE(prepared) << prepared.error().text();
      EXPECT_THAT(
          prepared->notes,
          kNames("argument ffn_hidden_size is 7, but tensor decoder.layers.0.", "shows 96"));
    }
  }
}

const std::vector<std::string> kComponents = {"language=tp=2", "images=tp=1"};

TEST(MimoContradiction, IsToldWhereItGoesAlong) {
  const Planted planted;
  ConvertRequest request;
  request.input = golden_path("hf/qwen35_vl/hf");
  request.output = planted.path();
  request.format = "mimo";
  request.components = parse_components(kComponents).value();
  const auto made = convert_now(request);
  ASSERT_TRUE(made) << made.error().text();
  const CommonState state = CommonState::read(planted.get(kState)).value();
  std::vector<std::string> notes;
  CommonStateEdits edits;
  edits.arguments.emplace_back("ffn_hidden_size", std::int64_t{7});
  planted.put(kState, state.encode(edits, notes).value());
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict),
              ElementsAre("ffn_hidden_size"));
  request.input = planted.path();
  request.output = planted.place() / "out";
  for (const std::string_view format : {"torch_dist", "mimo"}) {
    request.format = format;
    const auto prepared = prepare_conversion(request);
    ASSERT_TRUE(prepared) << prepared.error().text();
    EXPECT_THAT(prepared->notes, kNames("argument ffn_hidden_size is 7, but tensor ", "shows "));
  }
}

// Megatron-Bridge's own has no arguments, and says it in the provider of the language model.
TEST(MimoContradiction, IsFoundInTheRunConfig) {
  const Planted planted;
  ConvertRequest request;
  request.input = golden_path("hf/qwen35_vl/hf");
  request.output = planted.path();
  request.format = "mimo";
  request.components = parse_components(kComponents).value();
  ASSERT_TRUE(convert_now(request));
  planted.put(kState, new_common_state({}, 0, false).value());
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict), IsEmpty());
  const std::string config = "iter_0000000/run_config.yaml";
  std::string yaml = planted.get(config);
  const std::string key = "    num_query_groups: ";
  const std::size_t at = yaml.find(key);
  ASSERT_NE(at, std::string::npos) << yaml;
  yaml.replace(at, yaml.find('\n', at) - at, key + "7");
  planted.put(config, yaml);
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict),
              ElementsAre("num_query_groups"));
  request.input = planted.path();
  request.output = planted.place() / "out";
  request.format = "torch_dist";
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes,
              testing::Contains(testing::AllOf(HasSubstr("argument num_query_groups is 7, but "),
                                               HasSubstr("run_config.yaml goes along with it"))));
}

TEST_F(Contradiction, IsCorrectedByTheTrueConfig) {
  set("ffn_hidden_size", std::int64_t{7});
  set("num_layers", std::int64_t{2});
  ConvertRequest corrected = request("torch_dist");
  corrected.hf_config_dir = golden_path("hf/llama3/hf");
  const auto done = convert_now(corrected);
  ASSERT_TRUE(done) << done.error().text();
  const Checkpoint made = open_checkpoint(corrected.output).value();
  EXPECT_EQ(made.arguments.at("ffn_hidden_size"), ArgValue{std::int64_t{96}});
  EXPECT_EQ(made.arguments.at("num_layers"), ArgValue{std::int64_t{3}});
  EXPECT_THAT(objects_of(corrected.output, Code::kArgumentsContradict), IsEmpty());
  // Another model's does not help.
  corrected.hf_config_dir = golden_path("hf/qwen3/hf");
  const auto other = prepare_conversion(corrected);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kArgumentsContradict);
}

TEST_F(Contradiction, MakesNoConfigJson) {
  set("num_attention_heads", std::int64_t{8});
  // Its own config.json is not made of arguments.
  const auto prepared = prepare_conversion(request("hf"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes, testing::Contains(HasSubstr("config.json is used instead")));
  forget_config();
  EXPECT_EQ(refusal("hf").code, Code::kArgumentsContradict);
}

TEST_F(Contradiction, OfNothingIsALostState) {
  planted_.remove(kState);
  EXPECT_THAT(objects_of(planted_.path(), Code::kStateUnreadable), ElementsAre("common.pt"));
}

TEST(ConfigContradiction, IsFoundAndNotCarriedToMegatron) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict), IsEmpty());
  planted.edit_json("config.json", [](nlohmann::json& config) {
    config["num_key_value_heads"] = 4;
    config["architectures"] = {"NobodyForCausalLM"};
    config["model_type"] = "nobody";
  });
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict),
              ElementsAre("num_key_value_heads"));
  for (const std::int64_t layers : {std::int64_t{-3}, std::int64_t{1'000'000'000'000'000'000}}) {
    planted.edit_json("config.json",
                      [&](nlohmann::json& config) { config["num_hidden_layers"] = layers; });
    EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict),
                testing::Contains("num_hidden_layers"));
  }
}

// By what content_metadata says Megatron looks for the optimizer's states.
TEST(ContradictedSharding, IsFoundAndNotRepeated) {
  constexpr const char* kFile = "iter_0000010/common.pt";
  const Planted planted;
  Planted::copy("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full", planted);
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict), IsEmpty());
  StateDocument state = StateDocument::read(planted.get(kFile)).value();
  state.document().set(state.dict().find("content_metadata"), "distrib_optim_sharding_type",
                       state.document().string("dp_reshardable"));
  planted.put(kFile, state.encode().value());
  EXPECT_THAT(objects_of(planted.path(), Code::kArgumentsContradict),
              ElementsAre("content_metadata"));
  ConvertRequest request;
  request.input = planted.path();
  request.output = planted.place() / "out";
  request.format = "torch_dist";
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(done->notes, testing::Contains(HasSubstr("distrib_optim_sharding_type")));
  EXPECT_THAT(objects_of(request.output, Code::kArgumentsContradict), IsEmpty());
}

}  // namespace
}  // namespace shardwright
