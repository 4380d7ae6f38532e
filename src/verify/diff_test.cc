// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "model/arguments.h"
#include "state/common_state.h"
#include "state/state_document.h"
#include "verify/element_difference.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string golden(const std::string& path) { return golden_path(path); }

DiffReport diff(const std::string& left, const std::string& right,
                std::optional<double> tolerance = std::nullopt, const ProofOptions& options = {}) {
  const auto report = diff_checkpoints(left, right, options, tolerance);
  EXPECT_TRUE(report) << (report ? "" : report.error().text());
  return report.value_or(DiffReport{});
}

// A copy of the golden llama with one element of model.norm.weight set to other bits.
void set_norm(const Planted& planted, std::size_t index, std::uint16_t bits) {
  const auto report = show_tensor(planted.path(), "model.norm.weight", {}).value();
  std::string bytes = planted.get("model.safetensors");
  std::memcpy(bytes.data() + report.chunks.at(0).range.offset + 2 * index, &bits, sizeof bits);
  planted.put("model.safetensors", bytes);
}

TEST(Diff, FormsOfOneModelAreEqual) {
  const Planted made;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 2, 1, 1, 2}, made.path());
  const std::string hf = golden("hf/llama3/hf");
  const std::string legacy = golden("hf/llama3/legacy_tp2pp2ep1");
  for (const auto& [left, right] :
       {std::pair{hf, legacy}, std::pair{legacy, hf}, std::pair{made.path(), legacy},
        std::pair{hf, made.path()}, std::pair{hf, hf}, std::pair{made.path(), made.path()}}) {
    const DiffReport report = diff(left, right);
    EXPECT_TRUE(report.equal()) << left << " " << right;
    EXPECT_EQ(report.compared, left == right && left == hf ? 30u : 21u) << left << " " << right;
    EXPECT_EQ(report.elements, 158'144u);
  }
}

TEST(Diff, NamesTheFirstElementThatDiffers) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  set_norm(planted, 5, 0x4000);   // 2.0
  set_norm(planted, 40, 0x4080);  // 4.0
  for (const std::string& other : {golden("hf/llama3/hf"), golden("hf/llama3/legacy_tp2pp2ep1")}) {
    const DiffReport report = diff(planted.path(), other);
    ASSERT_EQ(report.differences.size(), 1u);
    const TensorDifference& found = report.differences.front();
    EXPECT_THAT(found.left.name, HasSubstr("norm.weight"));
    EXPECT_EQ(found.first, Dims{5});
    EXPECT_EQ(found.differing, 2u);
    EXPECT_GT(found.max_delta, 1.0);
    EXPECT_LT(found.max_delta, 5.0);
    EXPECT_EQ(report.differing, 2u);
    EXPECT_EQ(report.max_delta, found.max_delta);
    EXPECT_FALSE(report.equal());
  }
}

TEST(Diff, ToleranceIsOptIn) {
  const Planted a;
  const Planted b;
  Planted::copy("hf/llama3/hf", a);
  Planted::copy("hf/llama3/hf", b);
  set_norm(a, 0, 0x3f80);  // 1
  set_norm(b, 0, 0x3f81);  // 1.0078125
  EXPECT_FALSE(diff(a.path(), b.path()).equal());
  EXPECT_FALSE(diff(a.path(), b.path(), 0.0078124).equal());
  EXPECT_TRUE(diff(a.path(), b.path(), 0.0078125).equal());
}

TEST(Diff, NansAreEqualByTheirBits) {
  const Planted a;
  const Planted b;
  Planted::copy("hf/llama3/hf", a);
  Planted::copy("hf/llama3/hf", b);
  set_norm(a, 0, 0x7fc0);
  set_norm(b, 0, 0x7fc0);
  EXPECT_TRUE(diff(a.path(), b.path()).equal());
  set_norm(b, 0, 0x7fc1);
  EXPECT_EQ(diff(a.path(), b.path()).differing, 1u);
  EXPECT_EQ(diff(a.path(), b.path()).max_delta, 0.0);
  set_norm(b, 0, 0x3f80);
  EXPECT_EQ(diff(a.path(), b.path()).max_delta, HUGE_VAL);
}

TEST(Diff, TellsMissingTensorsAndOtherShapes) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  planted.edit_header("model.safetensors", [](auto& header) {
    header["new.name"] = header["model.norm.weight"];
    header.erase("model.norm.weight");
    header["lm_head.weight"]["shape"] = {header["lm_head.weight"]["shape"][1],
                                         header["lm_head.weight"]["shape"][0]};
    header["model.layers.0.input_layernorm.weight"]["dtype"] = "F16";
  });
  const DiffReport report = diff(golden("hf/llama3/hf"), planted.path());
  EXPECT_THAT(report.missing_right, ElementsAre("model.norm.weight"));
  EXPECT_THAT(report.missing_left, ElementsAre("new.name"));
  ASSERT_EQ(report.differences.size(), 2u);
  EXPECT_EQ(report.differences[0].left.name, "lm_head.weight");
  EXPECT_NE(report.differences[0].left.shape, report.differences[0].right.shape);
  EXPECT_NE(report.differences[1].left.dtype, report.differences[1].right.dtype);
  EXPECT_TRUE(report.differences[1].is_mismatch());
}

// What a run goes on with and is no tensor: in another form too, whose groups have entries.
TEST(Diff, NamesSettingsOfTrainingThatDiffer) {
  const std::string full = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
  const std::string state = "iter_0000010/common.pt";
  const Planted planted;
  Planted::copy(full, planted);
  StateDocument document = StateDocument::read(planted.get(state)).value();
  const pickle::Value optimizer = document.dict().find("optimizer");
  document.document().set(optimizer.find("optimizer").find("param_groups")[1], "lr",
                          document.document().real(0.5));
  document.document().set(document.dict().find("opt_param_scheduler"), "num_steps",
                          document.document().integer(7));
  planted.put(state, document.encode().value());
  const auto expect_both = [&](const std::string& left, const std::string& right) {
    const DiffReport report = diff(left, right);
    EXPECT_THAT(report.settings,
                ElementsAre("opt_param_scheduler: num_steps is 80, and on the right 7",
                            "parameter group 1 of the optimizer: lr is 0, and on the right "
                            "0.5"))
        << left << " " << right;
    EXPECT_THAT(report.differences, IsEmpty());
    EXPECT_EQ(report.verdict(), "DIFFERENT");
  };
  expect_both(golden(full), planted.path());
  for (const std::string_view format : {"legacy", "fsdp_dtensor"}) {
    const auto made = [&](const std::string& from, const std::string& name) {
      ConvertRequest request;
      request.input = from;
      request.output = planted.place() / name;
      request.format = format;
      request.optimizer = OptimizerPolicy::kKeep;
      const auto done = convert_now(request);
      EXPECT_TRUE(done) << done.error().text();
      return request.output;
    };
    const std::string of_whole = made(golden(full), fmt::format("whole_{}", format));
    const std::string of_planted = made(planted.path(), fmt::format("planted_{}", format));
    expect_both(of_whole, of_planted);
    if (format == "legacy") expect_both(of_whole, planted.path());
  }
}

// By these Megatron finds a group: one that has another is in no group of the other side.
TEST(Diff, NamesAnIdentifierOfAGroupThatDiffers) {
  const std::string full = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
  const std::string state = "iter_0000010/common.pt";
  const Planted planted;
  Planted::copy(full, planted);
  StateDocument document = StateDocument::read(planted.get(state)).value();
  const pickle::Value groups =
      document.dict().find("optimizer").find("optimizer").find("param_groups");
  document.document().set(groups[0], "max_lr", document.document().real(0.25));
  planted.put(state, document.encode().value());
  const DiffReport report = diff(golden(full), planted.path());
  EXPECT_THAT(report.settings,
              ElementsAre(HasSubstr("group 0 of the optimizer: max_lr is 0.001, and on the right "
                                    "0.25")));
  EXPECT_FALSE(report.equal());
}

// Of two adapters the same factors mean other weights where alpha is another, or its rule.
TEST(Diff, NamesSettingsOfAdaptersThatDiffer) {
  const Planted usual;
  const Planted other;
  const auto put = [](const Planted& planted, const std::string& config) {
    planted.put_header("adapter_model.safetensors",
                       R"({"base_model.model.q.lora_A.weight":)"
                       R"({"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})",
                       std::string(8, '\0'));
    planted.put("adapter_config.json", config);
  };
  put(usual, R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2})");
  put(other, R"({"lora_alpha": 2.0, "r": 1, "peft_type": "LORA"})");
  EXPECT_TRUE(diff(usual.path(), other.path()).equal());
  put(other, R"({"peft_type": "LORA", "r": 1, "lora_alpha": 4, "use_rslora": true,
                 "alpha_pattern": {"q": 8}})");
  const DiffReport report = diff(usual.path(), other.path());
  EXPECT_THAT(report.differences, IsEmpty());
  EXPECT_THAT(report.settings,
              ElementsAre("adapter: lora_alpha is 2, and on the right 4",
                          "adapter: use_rslora is false, and on the right true",
                          HasSubstr("adapter: alpha_pattern is [], and on the right [(\"q\", 8")));
  EXPECT_EQ(report.verdict(), "DIFFERENT");
}

// Megatron-Bridge says it in run_config.yaml.
TEST(Diff, NamesSettingsOfARunsAdaptersThatDiffer) {
  const Planted left;
  const Planted right;
  for (const auto& [planted, alpha] : {std::pair(&left, 16), std::pair(&right, 32)}) {
    Planted::convert("hf/llama3/hf", "torch_dist", {}, planted->path());
    planted->put("iter_0000000/run_config.yaml",
                 fmt::format("peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  dim: 8\n"
                             "  alpha: {}\n",
                             alpha));
  }
  EXPECT_THAT(diff(left.path(), right.path()).settings,
              ElementsAre("adapter: lora_alpha is 16, and on the right 32"));
  right.put("iter_0000000/run_config.yaml",
            "peft:\n  _target_: somebody.Prompts\n  dim: 8\n  alpha: 16\n");
  const DiffReport unlike = diff(left.path(), right.path());
  EXPECT_THAT(unlike.settings, IsEmpty());
  EXPECT_THAT(unlike.notes, Contains(HasSubstr("as an adapter are not compared: run_config.yaml: "
                                               "found peft of the kind Prompts")));
}

// Without a common state each value is an entry.
TEST(Diff, NamesValuesOfEntriesThatDiffer) {
  const Planted planted;
  Planted::copy("dcp/optimizer/ckpt", planted);
  planted.edit_metadata(
      [](Catalog& catalog) {
        const auto named = [&](std::string_view end) {
          return std::ranges::find_if(catalog.objects, [&](const StoredObject& object) {
            return object.name.ends_with(end);
          });
        };
        std::swap(named(".lr")->range, named(".eps")->range);
        std::swap(named(".lr")->file, named(".eps")->file);
      },
      "");
  const DiffReport report = diff(golden("dcp/optimizer/ckpt"), planted.path());
  EXPECT_THAT(report.differences, IsEmpty());
  ASSERT_EQ(report.settings.size(), 2u);
  EXPECT_THAT(report.settings[0], HasSubstr("and on the right "));
  EXPECT_FALSE(report.equal());
}

TEST(Diff, ComparesOptimizerStatesOfBothAndSaysWhereItCannot) {
  const std::string full = golden("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const std::string newer = golden("mcore/dense_te/v0.20.0dev/tp2pp1dp2-torch_dist-full");
  const DiffReport same = diff(full, newer);
  EXPECT_TRUE(same.equal());
  EXPECT_EQ(same.compared, 4 * 27u);
}

// Experts and rows of an MLite run lie as its sizes say, which a file need not tell.
TEST(Diff, AsksForTheSizesOfAnMliteRun) {
  const Planted planted;
  Planted::copy("dcp/mlite_sound", planted);
  planted.edit_metadata(
      [](Catalog& catalog) {
        std::erase_if(catalog.tensors,
                      [](const auto& t) { return t.desc.name.ends_with("router.weight"); });
      },
      "");
  const TemporaryFolder place;
  ConvertRequest request;
  request.input = planted.path();
  request.output = place / "out";
  request.format = "dcp";
  request.source_expert = 2;
  ASSERT_TRUE(convert_now(request));
  EXPECT_TRUE(diff(planted.path(), planted.path()).equal()) << "as both are stored";
  const auto refused = diff_checkpoints(planted.path(), place / "out", {}, std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("give --source-ep"));
  ProofOptions options;
  options.source.source_expert = 2;
  EXPECT_TRUE(diff(planted.path(), place / "out", std::nullopt, options).equal());
  EXPECT_TRUE(diff(place / "out", planted.path(), std::nullopt, options).equal());
  EXPECT_EQ(hash_checkpoint(planted.path(), options).value().model_digest,
            hash_checkpoint(place / "out", {}).value().model_digest);
  for (const std::int64_t wrong : {3, 7}) {
    options.source.source_expert = wrong;
    const auto none = diff_checkpoints(planted.path(), place / "out", options, std::nullopt);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("leave them out or correct them"));
    EXPECT_FALSE(hash_checkpoint(planted.path(), options));
  }
}

TEST(Diff, TakesOneOfNamedReplicasAndRefusesThoseThatDiffer) {
  const std::string full = golden("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  EXPECT_TRUE(diff(full, golden("replica/sound")).equal());
  const auto refused = diff_checkpoints(full, golden("replica/diverged"), {}, std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
}

TEST(Diff, LeavesPaddingOutThatOneSideKnows) {
  const Planted made;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = made.path();
  request.make_vocab_size_divisible_by = 1000;
  ASSERT_TRUE(convert_now(request));
  const DiffReport report = diff(golden("hf/llama3/hf"), made.path());
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.notes, Contains(HasSubstr("padding rows of the vocabulary")));
}

// What a training run says of itself.
void set_arguments(const Planted& planted, const ArgumentList& arguments) {
  constexpr const char* kState = "iter_0000000/common.pt";
  std::vector<std::string> notes;
  CommonStateEdits edits;
  edits.arguments = arguments;
  planted.put(kState, CommonState::read(planted.get(kState)).value().encode(edits, notes).value());
}

// A null tokenizer may count a token more than it is told, so that no run tells all its padding.
TEST(Diff, EndsWithTheFewerRowsWhereRunsLeaveTheirsOpen) {
  const Planted fewer;
  const Planted more;
  for (const auto& [planted, divisor] : {std::pair{&fewer, 1}, std::pair{&more, 96}}) {
    ConvertRequest request;
    request.input = golden_path("hf/llama3/hf");
    request.output = planted->path();
    request.make_vocab_size_divisible_by = divisor;
    ASSERT_TRUE(convert_now(request));
    planted->remove("iter_0000000/hf");
    set_arguments(*planted, {{"tokenizer_type", std::string("NullTokenizer")},
                             {"vocab_size", std::int64_t{512}},
                             {"padded_vocab_size", std::int64_t{divisor == 1 ? 512 : 576}}});
  }
  for (const DiffReport& report :
       {diff(fewer.path(), more.path()), diff(more.path(), fewer.path())}) {
    EXPECT_TRUE(report.equal());
    EXPECT_THAT(report.notes, Contains(HasSubstr("64 padding rows of the vocabulary are left out, "
                                                 "512 count")));
  }
  VerifyOptions options;
  options.against = fewer.path();
  EXPECT_FALSE(verify_checkpoint(more.path(), options).value().has_errors());
  set_arguments(more, {{"vocab_size", std::int64_t{513}}});
  for (const DiffReport& report :
       {diff(fewer.path(), more.path()), diff(more.path(), fewer.path())}) {
    EXPECT_FALSE(report.equal()) << "the other has no row for a token that this one tells of";
    EXPECT_THAT(report.notes, Contains(HasSubstr("--vocab-size says how many are not")));
  }
  EXPECT_TRUE(verify_checkpoint(more.path(), options).value().has_errors());
  ProofOptions told;
  told.vocab_size = 512;
  EXPECT_TRUE(diff(fewer.path(), more.path(), std::nullopt, told).equal());
}

// A second embedding that is not the first: legacy files have no place for it.
TEST(Diff, TellsOfValuesThatOnlyHuggingFaceStores) {
  const Planted planted;
  Planted::copy("hf/deepseek_v3_mtp/hf", planted);
  const std::string name = "model.layers.3.embed_tokens.weight";
  planted.flip("model.safetensors",
               show_tensor(planted.path(), name, {}).value().chunks.at(0).range.offset + 1);
  const TemporaryFolder place;
  for (const char* format : {"legacy", "torch_dist"}) {
    ConvertRequest request;
    request.input = planted.path();
    request.output = place / format;
    request.format = format;
    ASSERT_TRUE(convert_now(request));
  }
  for (const auto& [left, right] : {std::pair{planted.path(), place / "legacy"},
                                    std::pair{place / "legacy", place / "torch_dist"}}) {
    const DiffReport report = diff(left, right);
    EXPECT_TRUE(report.equal()) << left;
    EXPECT_THAT(report.notes, Contains(AllOf(HasSubstr("embed_tokens.weight is not compared"),
                                             HasSubstr("only one side keeps it"))));
    VerifyOptions options;
    options.against = right;
    EXPECT_THAT(verify_checkpoint(left, options).value().notes,
                Contains(HasSubstr("1 values that only Hugging Face stores are not compared")));
  }
  EXPECT_THAT(diff(planted.path(), place / "torch_dist").notes,
              Not(Contains(HasSubstr("only one side"))));
}

// Rows that mean something, and that the other model has not, are no padding.
TEST(Diff, FindsAVocabularyThatWasExtended) {
  const Planted made;
  const std::string model = golden_path("hf/llama3/hf");
  ConvertRequest request;
  request.input = model;
  request.output = made.path();
  request.extend_vocab = 600;
  ASSERT_TRUE(convert_now(request));
  EXPECT_FALSE(diff(golden("hf/llama3/hf"), made.path()).equal());
  EXPECT_FALSE(diff(made.path(), golden("hf/llama3/hf")).equal());
  made.put("../sums.json", write_manifest(hash_checkpoint(model, {}).value()));
  VerifyOptions options;
  options.against = made.place() / "sums.json";
  EXPECT_TRUE(verify_checkpoint(made.path(), options).value().has_errors());
  EXPECT_FALSE(verify_checkpoint(model, options).value().has_errors());
}

TEST(Diff, OfTwoModelsIsNeverEqual) {
  const DiffReport report = diff(golden("hf/llama3/hf"), golden("hf/qwen3/hf"));
  EXPECT_FALSE(report.equal());
  EXPECT_THAT(report.missing_left, Not(IsEmpty()));
}

TEST(CompareElements, OfComplexAndSmallTypes) {
  const std::vector<float> left = {1, 2, 3, 4};
  const std::vector<float> right = {1, 2, 3, 4.5};
  const auto found = compare_elements(DType::kC64, std::as_bytes(std::span(left)),
                                      std::as_bytes(std::span(right)), std::nullopt);
  EXPECT_EQ(found.differing, 1u);
  EXPECT_EQ(found.first, 1);
  EXPECT_EQ(found.max_delta, 0.5);
  const std::vector<std::uint8_t> a = {1, 2};
  const std::vector<std::uint8_t> b = {1, 9};
  const auto integers =
      compare_elements(DType::kU8, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), 100.0);
  EXPECT_EQ(integers.differing, 1u) << "a tolerance is for floating point types";
  EXPECT_EQ(integers.max_delta, 7.0);
}

TEST(CompareElements, PositionsAreThoseOfTheWholeTensor) {
  const Dims shape{4, 5};
  EXPECT_EQ(row_major_position(shape, {{2, 0}, {2, 5}}, 6), 16);
  EXPECT_EQ(index_of(shape, 16), (Dims{3, 1}));
}

}  // namespace
}  // namespace shardwright
