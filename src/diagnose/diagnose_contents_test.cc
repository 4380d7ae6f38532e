// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "convert/golden.h"
#include "dcp/dcp_metadata.h"
#include "model/arguments.h"
#include "shardwright/diagnose.h"
#include "state/common_state.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> codes_of(const std::string& path) {
  DiagnoseRequest request;
  request.path = path;
  const auto diagnosis = diagnose(request);
  if (!diagnosis) return {diagnosis.error().text()};
  std::vector<std::string> codes;
  for (const Finding& finding : diagnosis->findings) codes.push_back(finding.code);
  return codes;
}

Diagnosis diagnosis_of(const std::string& path) {
  DiagnoseRequest request;
  request.path = path;
  const auto diagnosis = diagnose(request);
  if (!diagnosis) throw std::runtime_error(diagnosis.error().text());
  return *diagnosis;
}

TEST(DiagnoseContents, FindsThatNothingIsACheckpoint) {
  const TemporaryFolder folder;
  folder.put("empty/notes.txt", "to do");
  folder.put("empty/README.md", "to read");
  const Diagnosis diagnosis = diagnosis_of(folder / "empty");
  EXPECT_EQ(diagnosis.format, "unknown");
  EXPECT_EQ(diagnosis.confidence, Confidence::kAmbiguous);
  EXPECT_EQ(diagnosis.complete, false);
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].code, "L41");
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kError);
  EXPECT_THAT(diagnosis.findings[0].message.english, testing::HasSubstr("README.md, notes.txt"));
}

// What lies further down is told, and never taken for what was meant.
TEST(DiagnoseContents, NamesTheOnlyCheckpointFurtherDown) {
  const TemporaryFolder folder;
  folder.put("run/it's/model_and_optim/.metadata", encode_dcp_metadata(Catalog{}).value());
  folder.put("run/it's/.metadata.json", "{}");
  const Diagnosis only = diagnosis_of(folder / "run");
  EXPECT_EQ(only.format, "unknown");
  EXPECT_EQ(only.findings[0].code, "L41");
  EXPECT_EQ(only.next,
            "shardwright diagnose '" + (folder / "run") + R"(/it'\''s/model_and_optim')");

  const Diagnosis named = diagnosis_of(folder / "run/it's");
  EXPECT_THAT(named.next, HasSubstr("model_and_optim"));
  const auto tells_writer = [](const Diagnosis& diagnosis) {
    return std::ranges::any_of(diagnosis.evidence, [](const Phrase& phrase) {
      return phrase.english.contains("OLMo-core");
    });
  };
  EXPECT_TRUE(tells_writer(named));

  folder.put("run/base/model.safetensors", "x");
  EXPECT_EQ(diagnosis_of(folder / "run").next, "") << "nothing says which of the two";
  folder.put("nothing/model_and_optim/a", "x");
  folder.put("nothing/.metadata.json", "{}");
  EXPECT_EQ(diagnosis_of(folder / "nothing").next, "");
  EXPECT_FALSE(tells_writer(diagnosis_of(folder / "nothing"))) << "there is none of its files";
}

TEST(DiagnoseContents, FindsThatNothingIsStored) {
  const TemporaryFolder folder;
  folder.put("empty/.metadata", encode_dcp_metadata(Catalog{}).value());
  EXPECT_THAT(codes_of(folder / "empty"), Contains("SW0320"));
}

// What verify does not call proven is not called complete here.
TEST(DiagnoseContents, FindsWhatIsLostAndWhatIsThereTwice) {
  const TemporaryFolder folder;
  const auto converted = [&](const std::string& input, const char* name,
                             const std::vector<std::string>& exclude) {
    ConvertRequest request;
    request.input = input;
    request.output = folder / name;
    request.format = "torch_dist";
    request.exclude = exclude;
    request.parallel.tensor = 2;
    EXPECT_TRUE(convert_now(request));
    return request.output;
  };
  const std::string whole = converted(golden_path("hf/llama3/hf"), "whole", {});
  EXPECT_EQ(diagnosis_of(whole).complete, true);
  EXPECT_THAT(codes_of(whole), IsEmpty());

  const std::string part = converted(whole, "part", {"decoder.final_layernorm.weight"});
  EXPECT_EQ(diagnosis_of(part).complete, false);
  EXPECT_THAT(codes_of(part), ElementsAre("SW0413"));

  const std::string doubled = converted(whole, "doubled", {});
  edit_metadata(doubled + "/iter_0000000", [](Catalog& catalog) {
    StoredTensor& tensor = *std::ranges::find_if(catalog.tensors, [](const StoredTensor& each) {
      return each.desc.name == "embedding.word_embeddings.weight";
    });
    ASSERT_EQ(tensor.chunks.size(), 2U);
    ChunkList closer(2);
    for (std::size_t i = 0; i < 2; ++i) {
      Chunk chunk = tensor.chunks[i];
      if (chunk.box.origin[0] > 0) --chunk.box.origin[0];
      closer.push_back(chunk);
    }
    tensor.chunks = std::move(closer);
    --tensor.desc.shape[0];
  });
  EXPECT_EQ(diagnosis_of(doubled).complete, false);
  EXPECT_THAT(codes_of(doubled), Contains("SW0308"));

  std::filesystem::remove(whole + "/iter_0000000/common.pt");
  EXPECT_EQ(diagnosis_of(whole).complete, false);
  EXPECT_THAT(codes_of(whole), Contains("SW0312"));
}

TEST(DiagnoseContents, FindsArgumentsThatContradictTheTensors) {
  const TemporaryFolder folder;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = folder / "ckpt";
  ASSERT_TRUE(convert_now(request));
  EXPECT_THAT(codes_of(folder / "ckpt"), testing::Not(Contains("SW0414")));
  const std::string state = "ckpt/iter_0000000/common.pt";
  std::vector<std::string> notes;
  CommonStateEdits edits;
  edits.arguments.emplace_back("num_layers", std::int64_t{2});
  folder.put(state, CommonState::read(folder.get(state)).value().encode(edits, notes).value());
  EXPECT_THAT(codes_of(folder / "ckpt"), Contains("SW0414"));
}

std::vector<std::string> contradictions_in(const std::string& path) {
  std::vector<std::string> told;
  for (const Finding& finding : diagnosis_of(path).findings) {
    if (finding.code != "SW0414") continue;
    told.push_back(finding.message.english);
    EXPECT_EQ(finding.message.chinese, "记录的参数与张量不符：" + finding.message.english);
  }
  return told;
}

struct HeldRow {
  const char* name;
  const char* model;
  std::string_view format;
  ParallelConfig parallel;
};

class HeldArguments : public testing::TestWithParam<HeldRow> {
 protected:
  Status convert(const std::string& from, const std::string& to, std::string_view format) const {
    ConvertRequest request;
    request.input = from;
    request.output = to;
    request.format = format;
    if (format == "legacy") request.parallel = GetParam().parallel;
    SW_TRY(convert_now(request));
    return {};
  }
};

// The files of ranks show it as well as what says all shapes.
TEST_P(HeldArguments, ContradictTheTensorsOfEveryFormatAlike) {
  const TemporaryFolder folder;
  ASSERT_TRUE(convert(golden_path(GetParam().model), folder / "first", "torch_dist"));
  const Status right = convert(folder / "first", folder / "right", GetParam().format);
  ASSERT_TRUE(right) << right.error().text();
  EXPECT_THAT(contradictions_in(folder / "right"), IsEmpty());
  const std::string state = "first/iter_0000000/common.pt";
  CommonStateEdits edits;
  std::vector<std::string> notes;
  for (const char* const name : {"num_layers", "hidden_size", "num_attention_heads",
                                 "ffn_hidden_size", "moe_ffn_hidden_size", "num_experts"}) {
    const Arguments arguments = open_checkpoint(folder / "first").value().arguments;
    // Fewer layers than there are: more would be a loss.
    const std::int64_t wrong = std::string_view(name) == "num_layers" ? 1 : 40;
    if (find_set(arguments, name) != nullptr) edits.arguments.emplace_back(name, wrong);
  }
  folder.put(state, CommonState::read(folder.get(state)).value().encode(edits, notes).value());
  const std::vector<std::string> expected = contradictions_in(folder / "first");
  EXPECT_GE(expected.size(), 4u);
  const Status made = convert(folder / "first", folder / "wrong", GetParam().format);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(contradictions_in(folder / "wrong"), expected);
  EXPECT_THAT(diagnosis_of(folder / "wrong").next, testing::StartsWith("shardwright verify "));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, HeldArguments,
    testing::Values(HeldRow{"Legacy", "hf/llama3/hf", "legacy", {2, 3, 1, 1, 2}},
                    HeldRow{"LegacyVirtual", "hf/llama3_4l/hf", "legacy", {1, 2, 2, 1, 1}},
                    HeldRow{"LegacyExperts", "hf/qwen3_moe/hf", "legacy", {2, 2, 1, 2, 1}},
                    HeldRow{"LegacyLatent", "hf/deepseek_v3/hf", "legacy", {2, 1, 1, 2, 2}},
                    HeldRow{"Fsdp", "hf/llama3/hf", "fsdp_dtensor", {}},
                    HeldRow{"FsdpExperts", "hf/qwen3_moe/hf", "fsdp_dtensor", {}}),
    [](const auto& row) { return row.param.name; });

// A stage of which the chosen file cannot be read has others.
TEST(DiagnoseContents, ReadsAnotherFileOfAStage) {
  const TemporaryFolder folder;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = folder / "ckpt";
  request.format = "legacy";
  request.parallel.tensor = 2;
  request.parallel.pipeline = 3;
  ASSERT_TRUE(convert_now(request));
  folder.put("ckpt/iter_0000000/mp_rank_00_001/model_optim_rng.pt", "");
  const Diagnosis diagnosis = diagnosis_of(folder / "ckpt");
  EXPECT_THAT(codes_of(folder / "ckpt"), Contains("L35"));
  for (const Phrase& evidence : diagnosis.evidence) {
    EXPECT_THAT(evidence.english, testing::Not(testing::HasSubstr("was not held")));
  }
}

// Of stages that were not read nobody knows the layers.
TEST(DiagnoseContents, SaysWhereArgumentsWereNotHeldAgainstTensors) {
  const TemporaryFolder folder;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = folder / "ckpt";
  request.format = "legacy";
  request.parallel.pipeline = 3;
  ASSERT_TRUE(convert_now(request));
  folder.put("ckpt/iter_0000000/mp_rank_00_001/model_optim_rng.pt", "");
  const Diagnosis diagnosis = diagnosis_of(folder / "ckpt");
  EXPECT_THAT(
      diagnosis.evidence,
      Contains(testing::Field(
          &Phrase::english, testing::HasSubstr("was not held against the tensors: files of 2 "
                                               "pipeline stages were read, expected 3; verify"))));
  EXPECT_THAT(diagnosis.evidence,
              Contains(testing::Field(&Phrase::chinese, testing::HasSubstr("未将运行记录的"))));
}

TEST(DiagnoseContents, FindsAConfigThatContradictsTheTensors) {
  const TemporaryFolder folder;
  std::filesystem::copy(golden_path("hf/llama3/hf"), folder / "hf");
  EXPECT_THAT(codes_of(folder / "hf"), IsEmpty());
  std::string config = folder.get("hf/config.json");
  const std::string key = "\"num_hidden_layers\": 3";
  ASSERT_NE(config.find(key), std::string::npos);
  config.replace(config.find(key), key.size(), "\"num_hidden_layers\": -3");
  folder.put("hf/config.json", config);
  EXPECT_THAT(codes_of(folder / "hf"), ElementsAre("SW0414"));
}

TEST(DiagnoseContents, FindsAConfigThatIsCutOff) {
  const TemporaryFolder folder;
  std::filesystem::copy(golden_path("hf/llama3/hf"), folder / "hf");
  folder.put("hf/config.json", folder.get("hf/config.json").substr(0, 300));
  EXPECT_THAT(codes_of(folder / "hf"), ElementsAre("SW0240"));
  EXPECT_EQ(diagnosis_of(folder / "hf").complete, false);
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = folder / "ckpt";
  ASSERT_TRUE(convert_now(request));
  EXPECT_THAT(codes_of(folder / "ckpt"), IsEmpty());
  folder.put("ckpt/iter_0000000/hf/config.json", "{");
  EXPECT_THAT(codes_of(folder / "ckpt"), ElementsAre("SW0240"));
}

TEST(DiagnoseContents, FindsShardsThatTorchDescribedWrong) {
  EXPECT_THAT(codes_of(golden_path("dcp/strided_rows7/ckpt")), Contains("SW0321"));
  EXPECT_THAT(codes_of(golden_path("dcp/fsdp2_tp2_uneven/ckpt")), IsEmpty());
}

TEST(DiagnoseFiles, WhatOnlyAConfigNamesNeedsOne) {
  TemporaryFolder place;
  place.put("consolidated.00.pth", read_golden("torch_save/2.13.0/01_state_dict.pt"));
  EXPECT_THAT(diagnose({place.path().string()})->next,
              testing::EndsWith(" OUT --to hf --hf-config MODEL"));
  place.put("config.json", "{}");
  const Diagnosis nobodys = diagnose({place.path().string()}).value();
  ASSERT_EQ(nobodys.findings.size(), 1U);
  EXPECT_EQ(nobodys.findings[0].code, "L51");
  EXPECT_EQ(nobodys.findings[0].severity, Severity::kWarning);
  EXPECT_THAT(nobodys.findings[0].message.english, HasSubstr("refuses it: error[SW0400]: "));
  EXPECT_EQ(nobodys.next, "shardwright explain SW0400");
  place.put("consolidated.02.pth", "x");
  const Diagnosis gap = diagnose({place.path().string()}).value();
  EXPECT_EQ(gap.complete, false);
  EXPECT_EQ(gap.confidence, Confidence::kCertain) << "the first file is a torch archive";
}

TEST(DiagnoseFiles, WhatAConversionRefusesIsNotTheNextCommand) {
  TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/llama3/hf"), place / "hf");
  std::string weights = place.get("hf/model.safetensors");
  const std::size_t at = weights.find("\"BF16\"");
  ASSERT_NE(at, std::string::npos);
  place.put("hf/model.safetensors", weights.replace(at, 6, "\"I16\" "));
  const Diagnosis diagnosis = diagnose({place / "hf"}).value();
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].code, "L51");
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kError);
  EXPECT_THAT(diagnosis.findings[0].message.english, HasSubstr("error[SW0409]: "));
  EXPECT_EQ(diagnosis.next, "shardwright verify " + (place / "hf"));
}

// The folders that the tensor ranks of a run ask for, where the checkpoint has two.
Diagnosis asked_of_ranks(const std::string& path, std::int64_t tensor) {
  DiagnoseRequest request = {path};
  request.believed.tensor = tensor;
  return diagnose(request).value();
}

void put_ranks_of(const std::string& model, const ParallelConfig& parallel, std::int64_t rows,
                  const std::string& output) {
  ConvertRequest request;
  request.input = golden_path("hf/" + model + "/hf");
  request.output = output;
  request.format = "legacy";
  request.parallel = parallel;
  request.make_vocab_size_divisible_by = rows;
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
}

TEST(DiagnoseRanks, WhatAConversionRefusesIsNotTheNextCommand) {
  const TemporaryFolder place;
  put_ranks_of("llama3", {2, 1, 1, 1, 2}, 257, place / "run");
  const std::string command =
      fmt::format("shardwright convert {} OUT --to ", place / "run/iter_0000000");
  EXPECT_EQ(asked_of_ranks(place / "run", 2).next, command + "torch_dist --tp 2");
  EXPECT_EQ(asked_of_ranks(place / "run", 4).next,
            command + "legacy --tp 4 --make-vocab-size-divisible-by 128");
  const Diagnosis impossible = asked_of_ranks(place / "run", 8);
  ASSERT_FALSE(impossible.findings.empty());
  EXPECT_EQ(impossible.findings.back().code, "L51");
  EXPECT_EQ(impossible.findings.back().severity, Severity::kWarning);
  EXPECT_THAT(impossible.findings.back().message.english, HasSubstr("error[SW0407]: "));
  EXPECT_EQ(impossible.next, "shardwright explain SW0407");
}

TEST(DiagnoseRanks, NothingIsPlannedForMoreThanASample) {
  const TemporaryFolder place;
  put_ranks_of("qwen3_moe", {4, 3, 1, 8, 4}, 1, place / "run");
  EXPECT_THAT(asked_of_ranks(place / "run", 64).next, HasSubstr(" --to legacy --tp 64 "));
}

TEST(DiagnoseRanks, ALaterSaveThanTheTrackersIsTold) {
  const TemporaryFolder place;
  put_ranks_of("llama3", {2, 1, 1, 1, 2}, 128, place / "run");
  const auto told =
      Contains(testing::Field(&Phrase::english, HasSubstr("iter_0000010 is a later")));
  EXPECT_THAT(diagnosis_of(place / "run").evidence, testing::Not(told));
  place.put("run/iter_0000010/notes.txt", "x");
  EXPECT_THAT(diagnosis_of(place / "run").evidence, told);
}

TEST(DiagnoseFiles, OneOfTheNumbersIsMissing) {
  TemporaryFolder place;
  const std::string part = "model-00001-of-00002.safetensors";
  place.put(part, read_golden("hf/llama3/hf/model.safetensors"));
  const Diagnosis folder = diagnose({place.path().string()}).value();
  EXPECT_EQ(folder.complete, false);
  ASSERT_EQ(folder.findings.size(), 1U);
  EXPECT_THAT(folder.findings[0].message.english, HasSubstr("model-00002-of-00002.safetensors"));
  const Diagnosis alone = diagnose({place / part}).value();
  EXPECT_EQ(alone.complete, false);
  ASSERT_FALSE(alone.evidence.empty());
  EXPECT_EQ(alone.evidence.back().english,
            part +
                " is one of 2 files by its name; only this one was given, the others are left "
                "out");
  place.put("x.safetensors", place.get(part));
  EXPECT_EQ(diagnose({place / "x.safetensors"})->complete, true);
}

}  // namespace
}  // namespace shardwright
