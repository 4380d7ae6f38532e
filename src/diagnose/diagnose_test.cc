// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>

#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "convert/golden.h"
#include "dcp/dcp_metadata.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "state/recorded_run.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kDense = "hf/llama3/legacy_tp2pp2ep1/iter_0000001/";
constexpr const char* kExperts = "hf/qwen3_moe/legacy_tp1pp1ep2/iter_0000001/";

std::vector<std::string> codes(const Diagnosis& diagnosis) {
  std::vector<std::string> codes;
  for (const Finding& finding : diagnosis.findings) codes.push_back(finding.code);
  return codes;
}

Diagnosis diagnosed(const std::string& path, AxisSizes believed = {}) {
  const auto diagnosis = diagnose({path, believed});
  if (!diagnosis) {
    ADD_FAILURE() << diagnosis.error().text();
    return {};
  }
  return *diagnosis;
}

struct GoldenRow {
  const char* path;
  const char* format;
  LayoutClass layout;
  std::vector<std::string> coordinates;
  AxisSizes sizes;
  std::vector<std::string> codes;
  AxisSizes believed = {};  // what is right to believe, where that is needed for a clean answer
};

std::vector<GoldenRow> golden_rows() {
  constexpr auto kNone = LayoutClass::kNone;
  return {
      {"hf/llama3/legacy_tp2pp2ep1",
       "legacy",
       LayoutClass::kPipeline,
       {"tp", "pp"},
       {2, 2, 1, 1, 1, 1},
       {"L12"}},
      {"hf/llama3_4l/legacy_tp1pp2ep1vpp2",
       "legacy",
       LayoutClass::kPipeline,
       {"tp", "pp"},
       {1, 2, 2, 1, 1, 1},
       {}},
      {"hf/qwen3_moe/legacy_tp1pp1ep2",
       "legacy",
       LayoutClass::kExpert,
       {"tp", "ep"},
       {1, 1, 1, 2, 1, 2},
       {"L19"}},
      {"hf/qwen3_moe/legacy_tp1pp1ep2",
       "legacy",
       LayoutClass::kExpert,
       {"tp", "ep"},
       {1, 1, 1, 2, 1, 2},
       {"L02"},
       {.tensor = 1, .pipeline = 1, .expert = 2}},
      {"hf/qwen3_moe/legacy_tp2pp2ep2etp1",
       "legacy",
       LayoutClass::kExpert,
       {"tp", "pp", "ep"},
       {2, 2, 1, 2, 1, 1},
       {"L06", "L12", "L19"}},
      {"mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero",
       "torch_dist",
       kNone,
       {},
       {2, 1, 1, 1, 1, 2},
       {}},
      {"mcore/dense/v0.15.3/tp2pp2-torch_dist-modelspace",
       "torch_dist",
       kNone,
       {},
       {2, 2, 1, 1, 1, 1},
       {}},
      {"mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full",
       "torch_dist",
       kNone,
       {},
       {1, 2, 1, 2, 1, 2},
       {}},
      {"hf/llama3/hf", "hf", kNone, {}, {}, {}},
      {"hf/qwen3_moe/hf", "hf", kNone, {}, {}, {}},
  };
}

TEST(Diagnose, GoldenCheckpointsAreWhatTheyAre) {
  for (const GoldenRow& row : golden_rows()) {
    const Diagnosis diagnosis = diagnosed(golden_path(row.path), row.believed);
    EXPECT_EQ(diagnosis.format, row.format) << row.path;
    EXPECT_EQ(diagnosis.layout, row.layout) << row.path;
    EXPECT_EQ(diagnosis.coordinates, row.coordinates) << row.path;
    EXPECT_EQ(diagnosis.sizes, row.sizes) << row.path;
    EXPECT_EQ(codes(diagnosis), row.codes) << row.path;
    EXPECT_EQ(diagnosis.confidence, Confidence::kCertain) << row.path;
    EXPECT_EQ(diagnosis.complete, true) << row.path;
    EXPECT_FALSE(diagnosis.next.empty()) << row.path;
  }
}

std::string padding_policy(const std::string& path) {
  const Diagnosis diagnosis = diagnosed(path, {.tensor = 4});
  for (const Finding& finding : diagnosis.findings) {
    if (finding.code != "L17") continue;
    const std::size_t at = finding.message.english.find("policy: ");
    return finding.message.english.substr(at);
  }
  return "no finding";
}

// 512 words in 600 rows on two ranks: the last row is padding, row 511 is on rank 1 too.
TEST(Diagnose, SaysWhatThePaddingRowsHold) {
  const TemporaryFolder place;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = place / "ckpt";
  request.format = "legacy";
  request.parallel = {2, 1, 1, 1, 2};
  request.make_vocab_size_divisible_by = 300;
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_EQ(padding_policy(place / "ckpt"), "policy: zero).");

  const Checkpoint opened = open_checkpoint(place / "ckpt").value();
  const auto embedding =
      std::ranges::find(opened.catalog.tensors, "embedding.word_embeddings.weight",
                        [](const StoredTensor& tensor) { return tensor.desc.name; });
  ASSERT_NE(embedding, opened.catalog.tensors.end());
  const std::string path =
      opened.location.path + "/" + opened.catalog.files[embedding->chunks.file(1)];
  const auto offset = static_cast<std::streamoff>(embedding->chunks.range(1).offset);
  const std::streamoff width = embedding->desc.shape[1] * 2;
  std::string word(static_cast<std::size_t>(width), '\0');
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset + (511 - 300) * width);
  file.read(word.data(), width);
  file.seekp(offset + 299 * width);
  file.write(word.data(), width);
  file.flush();
  EXPECT_EQ(padding_policy(place / "ckpt"), "policy: last-row).");
  file.seekp(offset + 299 * width);
  file.write("odd", 3);
  file.close();
  EXPECT_EQ(padding_policy(place / "ckpt"), "policy: neither zero nor the last row).");
}

TEST(Diagnose, AnIterationsFolderIsReadAsItsRoot) {
  const Diagnosis root = diagnosed(golden_path("hf/llama3/legacy_tp2pp2ep1"));
  const Diagnosis inner = diagnosed(golden_path("hf/llama3/legacy_tp2pp2ep1/iter_0000001/"));
  EXPECT_EQ(inner.path, root.path);
  EXPECT_EQ(inner.sizes, root.sizes);
  EXPECT_THAT(codes(inner), ElementsAre("L12", "L15"));
  EXPECT_EQ(inner.findings[1].message.english,
            "You passed the iteration directory; Megatron --load expects its parent.");
  EXPECT_EQ(inner.findings[1].message.chinese,
            "传入的是 iteration 目录，Megatron 的 --load 需要其父目录。");
}

Result<Diagnosis> diagnosed(const Directory& directory, DiagnoseRequest request = {"ckpt"}) {
  return diagnose_directory(directory, request);
}

// Folders of a golden checkpoint under names of the test's choice.
void put_ranks(MemoryDirectory& directory, const std::string& golden,
               std::initializer_list<std::pair<const char*, const char*>> names) {
  for (const auto& [name, from] : names) {
    directory.put(fmt::format("{}/model_optim_rng.pt", name),
                  read_golden(golden + from + "/model_optim_rng.pt"));
  }
}

TEST(Diagnose, AThousandFoldersCostAFewOpens) {
  MemoryDirectory inner;
  const std::string rank = read_golden(std::string(kDense) + "mp_rank_00_000/model_optim_rng.pt");
  for (int tp = 0; tp < 8; ++tp) {
    for (int pp = 0; pp < 125; ++pp) {
      inner.put(fmt::format("mp_rank_{:02}_{:03}/model_optim_rng.pt", tp, pp), rank);
    }
  }
  RecordingDirectory directory(inner);
  const Diagnosis diagnosis = diagnosed(directory).value();
  EXPECT_EQ(diagnosis.disk_arity, 2);
  EXPECT_EQ(diagnosis.sizes.tensor, 2) << "as the arguments say";
  // Once for what they hold and once for what their pickles would run, of 64 files; and all others
  // for how they end.
  EXPECT_LE(directory.opens(), 50 + 64 + 1000);
  for (const auto& [path, record] : directory.records()) EXPECT_LE(record.opens, 2) << path;
  EXPECT_LT(directory.bytes_read(), 64 * rank.size() + 1000 * 128);
}

TEST(Diagnose, ReadsNoTensorWhereContentsDecide) {
  MemoryDirectory inner;
  put_ranks(inner, kExperts,
            {{"mp_rank_00_000", "mp_rank_00_000"}, {"mp_rank_00_001", "mp_rank_00_001"}});
  RecordingDirectory directory(inner);
  const Diagnosis diagnosis = diagnosed(directory).value();
  EXPECT_THAT(diagnosis.coordinates, ElementsAre("tp", "ep"));
  for (const Phrase& evidence : diagnosis.evidence) {
    EXPECT_THAT(evidence.english, ::testing::Not(HasSubstr("bytes of tensors")));
  }
}

// A real rank's file with another state around its tensors.
std::string edited(const std::string& bytes,
                   const std::function<void(pickle::Document&, pickle::Value)>& edit) {
  const auto file = make_memory_file("model_optim_rng.pt", bytes);
  const TorchArchive archive = TorchArchive::open(*file).value();
  constexpr std::uint64_t kLimit = 1 << 26;
  const std::string text = archive.zip().read(*archive.record("data.pkl"), kLimit).value();
  pickle::Document document = pickle::decode(std::as_bytes(std::span(text))).value();
  edit(document, document.root());
  const std::string pickled = pickle::encode(document, pickle::Protocol::kTwo).value();
  return archive.with_pickle(pickled, kLimit).value();
}

void forget_arguments(pickle::Document& document, pickle::Value state) {
  document.set(state, "args", document.none());
}

TEST(Diagnose, KnowsGoldenLayoutsWithoutArguments) {
  struct Row {
    std::string folder;
    std::vector<std::string> coordinates;
    AxisSizes sizes;
  };
  const std::vector<Row> rows = {
      {"hf/llama3/legacy_tp2pp2ep1/iter_0000001", {"tp", "pp"}, {2, 2, 1, 1, 1, {}}},
      {"hf/llama3_4l/legacy_tp1pp2ep1vpp2/iter_0000001", {"tp", "pp"}, {1, 2, 2, 1, 1, {}}},
      {"hf/qwen3_moe/legacy_tp1pp1ep2/iter_0000001", {"tp", "ep"}, {1, 1, 1, 2, 1, {}}},
      {"hf/qwen3_moe/legacy_tp2pp2ep2etp1/iter_0000001", {"tp", "pp", "ep"}, {2, 2, 1, 2, 1, {}}},
  };
  for (const Row& row : rows) {
    MemoryDirectory directory;
    for (const auto& entry : std::filesystem::directory_iterator(golden_path(row.folder))) {
      const std::string name = entry.path().filename().string() + "/model_optim_rng.pt";
      directory.put(name, edited(read_golden(row.folder + "/" + name), forget_arguments));
    }
    const Diagnosis diagnosis = diagnosed(directory).value();
    EXPECT_EQ(diagnosis.coordinates, row.coordinates) << row.folder;
    EXPECT_EQ(diagnosis.sizes, row.sizes) << row.folder;
    EXPECT_EQ(diagnosis.complete, true) << row.folder;
    EXPECT_EQ(diagnosis.confidence, Confidence::kCertain) << row.folder;
  }
}

TEST(Diagnose, ReadsBytesWhereNothingElseDecides) {
  // One matrix and one expert of each rank: fits a stage as well as an expert rank.
  const auto reduce = [](pickle::Document& document, pickle::Value state) {
    forget_arguments(document, state);
    const pickle::Value model = state.find("model");
    const pickle::Value left = document.dict();
    for (const char* name : {"decoder.layers.0.self_attention.linear_proj.weight",
                             "decoder.layers.0.mlp.experts.linear_fc1.weight0"}) {
      document.set(left, name, model.find(name));
    }
    document.set(state, "model", left);
  };
  const std::string first =
      read_golden(std::string(kExperts) + "mp_rank_00_000/model_optim_rng.pt");
  const std::string second =
      read_golden(std::string(kExperts) + "mp_rank_00_001/model_optim_rng.pt");
  MemoryDirectory directory;
  directory.put("mp_rank_00_000/model_optim_rng.pt", edited(first, reduce));
  directory.put("mp_rank_00_001/model_optim_rng.pt", edited(second, reduce));
  const Diagnosis diagnosis = diagnosed(directory).value();
  EXPECT_THAT(diagnosis.coordinates, ElementsAre("tp", "ep"));
  EXPECT_EQ(diagnosis.confidence, Confidence::kLikely);
  EXPECT_THAT(diagnosis.evidence.front().english,
              HasSubstr("is the same, byte for byte, in mp_rank_00_000 and mp_rank_00_001"));
  EXPECT_THAT(diagnosis.evidence.back().english, HasSubstr("bytes of tensors were read"));
  EXPECT_THAT(diagnosis.evidence.back().chinese, HasSubstr("字节的张量数据"));
}

TEST(Diagnose, ComparesReplicasWhenAsked) {
  MemoryDirectory inner;
  put_ranks(inner, kExperts,
            {{"mp_rank_00_000", "mp_rank_00_000"}, {"mp_rank_00_001", "mp_rank_00_001"}});
  DiagnoseRequest request{"ckpt", {.expert = 2}, true};
  const Diagnosis same = diagnosed(inner, request).value();
  EXPECT_THAT(codes(same), ElementsAre("L02"));
  EXPECT_THAT(same.evidence[same.evidence.size() - 1].english, HasSubstr("565760 bytes"));
  // The same tensors on two tensor ranks: what should be cut is whole, replicas are replicas.
  MemoryDirectory repeated;
  put_ranks(repeated, kDense,
            {{"mp_rank_00_000", "mp_rank_00_000"},
             {"mp_rank_01_000", "mp_rank_00_000"},
             {"mp_rank_00_001", "mp_rank_00_001"},
             {"mp_rank_01_001", "mp_rank_01_001"}});
  request.believed = {};
  const Diagnosis twice = diagnosed(repeated, request).value();
  EXPECT_THAT(codes(twice), ::testing::Contains("L20"));
  EXPECT_THAT(codes(twice), ::testing::Not(::testing::Contains("L21")));
  // Stages taken for tensor ranks: norms differ.
  MemoryDirectory swapped;
  put_ranks(swapped, kDense,
            {{"mp_rank_00_000", "mp_rank_00_000"},
             {"mp_rank_01_000", "mp_rank_00_001"},
             {"mp_rank_00_001", "mp_rank_00_001"},
             {"mp_rank_01_001", "mp_rank_01_001"}});
  EXPECT_THAT(codes(diagnosed(swapped, request).value()), ::testing::Contains("L21"));
}

TEST(Diagnose, ABadFileIsAFinding) {
  MemoryDirectory directory;
  put_ranks(directory, kDense,
            {{"mp_rank_00_000", "mp_rank_00_000"},
             {"mp_rank_00_001", "mp_rank_00_001"},
             {"mp_rank_01_000", "mp_rank_01_000"},
             {"mp_rank_01_001", "mp_rank_01_001"}});
  directory.truncate("mp_rank_00_001/model_optim_rng.pt", 5000);
  const Diagnosis diagnosis = diagnosed(directory).value();
  EXPECT_THAT(codes(diagnosis), ElementsAre("L12", "L35"));
  EXPECT_THAT(diagnosis.findings[1].message.english,
              HasSubstr("mp_rank_00_001/model_optim_rng.pt cannot be read: error[SW0210]"));
  EXPECT_EQ(diagnosis.complete, false);
  EXPECT_THAT(diagnosis.coordinates, ElementsAre("tp", "pp")) << "the others still say so";
}

// Only some files are read, of each stage one: the others are looked at where they end.
TEST(Diagnose, ABadFileThatNobodyReadsIsAFinding) {
  const std::string last = "mp_rank_01_000/model_optim_rng.pt";
  const auto damaged = [&](const auto& damage) {
    MemoryDirectory directory;
    put_ranks(directory, kDense,
              {{"mp_rank_00_000", "mp_rank_00_000"},
               {"mp_rank_00_001", "mp_rank_00_001"},
               {"mp_rank_01_000", "mp_rank_01_000"},
               {"mp_rank_01_001", "mp_rank_01_001"}});
    const auto file = directory.open(last).value();
    std::string bytes(file->size(), '\0');
    EXPECT_TRUE(file->read_at(0, std::as_writable_bytes(std::span(bytes))));
    damage(bytes);
    directory.put(last, bytes);
    return diagnosed(directory).value();
  };
  const auto told = [&](const Diagnosis& diagnosis) {
    EXPECT_EQ(diagnosis.complete, false);
    EXPECT_EQ(std::ranges::count(codes(diagnosis), "L35"), 1);
    const auto found = std::ranges::find(diagnosis.findings, "L35", &Finding::code);
    return found == diagnosis.findings.end() ? "" : found->message.english;
  };
  const auto said = HasSubstr(last + " cannot be read: error[SW02");
  EXPECT_THAT(told(damaged([](std::string& b) { b.resize(b.size() - 100); })), said);
  EXPECT_THAT(told(damaged([](std::string& b) { b.resize(b.size() / 2); })), said);
  EXPECT_THAT(told(damaged([](std::string& b) { b += std::string(b); })), said);
  EXPECT_THAT(told(damaged([](std::string& b) { b.assign(b.size(), '\0'); })),
              HasSubstr(last + " cannot be read: "));
  EXPECT_EQ(damaged([](std::string&) {}).complete, true);
}

TEST(Diagnose, ATrackerThatPointsNowhereIsAFinding) {
  MemoryDirectory directory;
  put_ranks(directory, kExperts,
            {{"iter_0000001/mp_rank_00_000", "mp_rank_00_000"},
             {"iter_0000001/mp_rank_00_001", "mp_rank_00_001"}});
  directory.put("latest_checkpointed_iteration.txt", "20\n");
  const Diagnosis diagnosis = diagnosed(directory, {"ckpt", {.expert = 2}}).value();
  EXPECT_THAT(codes(diagnosis), ElementsAre("L02", "L14"));
  EXPECT_EQ(diagnosis.findings[1].severity, Severity::kError);
  EXPECT_EQ(diagnosis.findings[1].message.english,
            "Tracker points to '20' but iter_0000020 is missing or partial.");
  EXPECT_EQ(diagnosis.findings[1].message.chinese,
            "tracker 指向 '20'，但 iter_0000020 不存在或不完整。");
  EXPECT_EQ(diagnosis.path, "ckpt/iter_0000001");
}

// As an interrupted copy leaves them.
TEST(Diagnose, EmptyFoldersOfRanksAreMissing) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/llama3/legacy_tp2pp2ep1"), place / "run",
                        std::filesystem::copy_options::recursive);
  for (const char* rank : {"00_001", "01_000", "01_001"}) {
    const std::string folder = place / fmt::format("run/iter_0000001/mp_rank_{}", rank);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  const Diagnosis diagnosis = diagnosed(place / "run", {.tensor = 2, .pipeline = 2});
  const auto missing = std::ranges::find(diagnosis.findings, "L09", &Finding::code);
  ASSERT_NE(missing, diagnosis.findings.end());
  EXPECT_THAT(missing->message.english, HasSubstr("; found 1 of 4."));
  EXPECT_EQ(diagnosis.missing.size(), 3u);
  EXPECT_THAT(diagnosis.unexpected, ElementsAre());
}

TEST(Diagnose, WhatMegatronLooksForFirstIsMissing) {
  const TemporaryFolder place;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = place / "run";
  request.format = "torch_dist";
  ASSERT_TRUE(convert_now(request));
  EXPECT_THAT(codes(diagnosed(place / "run")), ElementsAre());
  std::filesystem::remove(place / "run/latest_checkpointed_iteration.txt");
  const Diagnosis untracked = diagnosed(place / "run");
  ASSERT_THAT(codes(untracked), ElementsAre("L47"));
  EXPECT_THAT(untracked.findings[0].message.english, HasSubstr("iter_0000000 is there, but no"));
  EXPECT_THAT(untracked.findings[0].message.english, HasSubstr("write '0' into"));
  EXPECT_THAT(codes(diagnosed(place / "run/iter_0000000")), ElementsAre("L15"));
  place.put("run/latest_train_state.pt", "Megatron-Bridge's own");
  EXPECT_THAT(codes(diagnosed(place / "run")), ElementsAre());

  std::filesystem::remove(place / "run/iter_0000000/metadata.json");
  const Diagnosis bare = diagnosed(place / "run");
  EXPECT_EQ(bare.format, "torch_dist");
  EXPECT_EQ(bare.complete, false);
  ASSERT_THAT(codes(bare), ElementsAre("L48"));
  EXPECT_THAT(bare.findings[0].message.english, HasSubstr(R"({"sharded_backend": "torch_dist",)"));
}

TEST(Diagnose, ARootThatIsCalledReleaseIsNoIteration) {
  MemoryDirectory directory;
  put_ranks(directory, kDense,
            {{"iter_0000001/mp_rank_00_000", "mp_rank_00_000"},
             {"iter_0000001/mp_rank_00_001", "mp_rank_00_001"},
             {"iter_0000001/mp_rank_01_000", "mp_rank_01_000"},
             {"iter_0000001/mp_rank_01_001", "mp_rank_01_001"}});
  directory.put("latest_checkpointed_iteration.txt", "1");
  EXPECT_THAT(codes(diagnosed(directory, {"runs/release"}).value()), ElementsAre("L12"));
}

TEST(Diagnose, TwoFormatsInOneFolderAreAFinding) {
  MemoryDirectory directory;
  put_ranks(directory, kExperts,
            {{"mp_rank_00_000", "mp_rank_00_000"}, {"mp_rank_00_001", "mp_rank_00_001"}});
  directory.put(".metadata", "x");
  const Diagnosis legacy = diagnosed(directory, {"ckpt", {.expert = 2}}).value();
  EXPECT_EQ(legacy.format, "legacy");
  EXPECT_EQ(legacy.confidence, Confidence::kAmbiguous);
  EXPECT_THAT(codes(legacy), ElementsAre("L02", "L23"));
  EXPECT_EQ(legacy.findings[1].message.english,
            "ckpt holds 2 checkpoints: legacy (mp_rank_00_000 holds what one rank saved) and dcp "
            "(.metadata lists the stored chunks); name one with --as FORMAT or by its own folder. "
            "This is said of legacy, which Megatron would look for first.");
  EXPECT_THAT(legacy.findings[1].message.chinese,
              HasSubstr("以下针对 legacy，即 Megatron 最先查找的格式。"));
  EXPECT_EQ(legacy.next, "shardwright convert ckpt --as legacy OUT --to torch_dist --ep 2");
  const Diagnosis chosen = diagnosed(directory, {"ckpt", {.expert = 2}, false, "legacy"}).value();
  EXPECT_THAT(codes(chosen), ElementsAre("L02"));
  EXPECT_EQ(chosen.confidence, Confidence::kCertain);
  EXPECT_EQ(chosen.next, legacy.next) << "the folder still holds both";
  EXPECT_EQ(diagnosed(directory, {"ckpt", {}, false, "dcp"}).value().format, "dcp");
  EXPECT_EQ(diagnosed(directory, {"ckpt", {}, false, "hf"}).error().code, Code::kUsage);
  directory.put("metadata.json", R"({"sharded_backend": "torch_dist"})");
  EXPECT_EQ(diagnosed(directory).value().format, "torch_dist");
}

// A dataloader's folder inside torch_dist is what Megatron leaves there.
TEST(Diagnose, DataloadersInsideTorchDistAreNoSecondFormat) {
  MemoryDirectory directory;
  directory.put(".metadata", "x");
  directory.put("metadata.json", R"({"sharded_backend": "torch_dist"})");
  directory.put("mp_rank_00/train_dataloader_dprank000.pt", "x");
  const Diagnosis diagnosis = diagnosed(directory).value();
  EXPECT_EQ(diagnosis.format, "torch_dist");
  EXPECT_THAT(codes(diagnosis), ElementsAre("L35")) << "nothing to read behind this directory";
}

TEST(Diagnose, OtherSoftwareIsNamedWithItsReader) {
  MemoryDirectory directory;
  directory.put("expert_3_mp_rank_00_model_states.pt", "x");
  const Diagnosis diagnosis = diagnosed(directory).value();
  EXPECT_EQ(diagnosis.format, "deepspeed_moe");
  EXPECT_EQ(diagnosis.layout, LayoutClass::kNone);
  ASSERT_THAT(codes(diagnosis), ElementsAre("L34"));
  EXPECT_EQ(diagnosis.findings[0].message.english,
            "This is a DeepSpeed MoE checkpoint (one file per expert). shardwright does not "
            "convert it as it lies here; "
            "it is read by DeepSpeed's load_checkpoint.");
  EXPECT_EQ(diagnosis.findings[0].message.chinese,
            "类型：DeepSpeed MoE checkpoint（每个专家一个文件）。shardwright "
            "不直接转换此处的内容；读取工具：DeepSpeed 的 load_checkpoint。");
  MemoryDirectory zarr;
  zarr.put(".zarray", "{}");
  EXPECT_EQ(diagnosed(zarr).value().format, "zarr");
  EXPECT_THAT(codes(diagnosed(zarr).value()), ElementsAre("L34"));
  EXPECT_EQ(diagnosed(MemoryDirectory()).value().format, "unknown");
}

TEST(Diagnose, AnIterationOfMsSwiftHasItsWeightsElsewhere) {
  const TemporaryFolder folder;
  folder.put("run/checkpoint-5/iter_0000005/common.pt", "x");
  const std::string save = folder / "run/checkpoint-5";
  const Diagnosis lost = diagnosed(folder / "run");
  ASSERT_THAT(codes(lost), ElementsAre("L26"));
  EXPECT_EQ(lost.findings[0].message.english,
            "Only common.pt is present: neither " + save + " nor " + save +
                "-merged, where ms-swift would have them, has weights.");
  EXPECT_EQ(lost.findings[0].message.chinese,
            "只有 common.pt：" + save + " 和 " + save +
                "-merged（ms-swift 存放权重的位置）中都没有权重。");
  EXPECT_TRUE(lost.has_errors());
  EXPECT_EQ(lost.complete, false);
  EXPECT_EQ(lost.next, "shardwright explain L26");

  folder.put("run/checkpoint-5-merged/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  for (const std::string& given : {save, save + "/iter_0000005"}) {
    const Diagnosis merged = diagnosed(given);
    ASSERT_THAT(codes(merged), ElementsAre("L26"));
    EXPECT_EQ(merged.findings[0].message.english,
              "Only common.pt is present: the weights are in " + save + "-merged (ms-swift).");
    EXPECT_FALSE(merged.has_errors());
    EXPECT_EQ(merged.next, "shardwright diagnose " + save + "-merged");
  }
  EXPECT_EQ(diagnosed(folder / "run").path, save + "-merged");

  folder.put("run/checkpoint-5/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(diagnosed(save + "/iter_0000005").next, "shardwright diagnose " + save);
  EXPECT_EQ(diagnosed(folder / "run").path, save);
}

TEST(Diagnose, AHoleInMetadataIsAFinding) {
  Catalog catalog;
  catalog.files = {"__0_0.distcp"};
  StoredTensor tensor{{"decoder.w", DType::kF32, {4, 2}}, ChunkList(2)};
  tensor.chunks.push_back({{{0, 0}, {1, 2}}, 0, {0, 8}, {}});
  catalog.tensors.push_back(std::move(tensor));
  TemporaryFolder folder;
  folder.put(".metadata", encode_dcp_metadata(catalog, {}).value());
  folder.put("__0_0.distcp", std::string(64, 'x'));
  const Diagnosis diagnosis = diagnosed(folder.path().string());
  EXPECT_EQ(diagnosis.format, "dcp");
  ASSERT_THAT(codes(diagnosis), ElementsAre("L22"));
  EXPECT_EQ(
      diagnosis.findings[0].message.english,
      "Metadata covers only 25% of decoder.w; 1 entries have such holes. A cover too small by "
      "the factor ETP is the replica_id defect (Megatron-LM #1836).");
  EXPECT_EQ(
      diagnosis.findings[0].message.chinese,
      "元数据只覆盖 decoder.w 的 25%；共 1 个条目有空洞。若恰好缩小 ETP 倍，则符合 ETP replica_id "
      "缺陷（Megatron-LM #1836）。");
  EXPECT_EQ(diagnosis.complete, false);
}

TEST(Diagnose, AHoleIsWhatAllPiecesLeave) {
  Catalog catalog;
  catalog.files = {"__0_0.distcp"};
  StoredTensor tensor{{"decoder.w", DType::kF32, {4, 2}}, ChunkList(2)};
  std::uint64_t offset = 0;
  for (const std::int64_t row : {2, 0}) {
    tensor.chunks.push_back({{{row, 0}, {1, 2}}, 0, {offset, 8}, {}});
    offset += 8;
  }
  catalog.tensors.push_back(std::move(tensor));
  TemporaryFolder folder;
  folder.put(".metadata", encode_dcp_metadata(catalog, {}).value());
  folder.put("__0_0.distcp", std::string(64, 'x'));
  const Diagnosis diagnosis = diagnosed(folder.path().string());
  ASSERT_THAT(codes(diagnosis), ElementsAre("L22"));
  EXPECT_THAT(diagnosis.findings[0].message.english, testing::HasSubstr("only 50% of decoder.w"));
}

// What two ranks saved alike covers no more than once.
TEST(Diagnose, AHoleIsNotFilledByReplicas) {
  TemporaryFolder folder;
  for (const std::string rank : {"0", "1"}) {
    Catalog catalog;
    catalog.files = {"__" + rank + "_0.distcp"};
    StoredTensor tensor{{"decoder.w", DType::kF32, {4, 2}}, ChunkList(2)};
    tensor.chunks.push_back({{{1, 0}, {1, 2}}, 0, {0, 8}, {}});
    catalog.tensors.push_back(std::move(tensor));
    folder.put("__" + rank + ".metadata", encode_dcp_metadata(catalog, {}).value());
    folder.put(catalog.files[0], std::string(64, 'x'));
  }
  const Diagnosis diagnosis = diagnosed(folder.path().string());
  ASSERT_THAT(codes(diagnosis), testing::Contains("L22"));
  const auto hole = std::ranges::find(diagnosis.findings, "L22", &Finding::code);
  EXPECT_THAT(hole->message.english, testing::HasSubstr("only 25% of decoder.w"));
}

TEST(Diagnose, WhatIsNoFolderIsAnError) {
  EXPECT_EQ(diagnose({"no-such-path"}).error().code, Code::kNotFound);
  TemporaryFolder folder;
  folder.put("a.nemo", "x");
  folder.put("a.txt", "x");
  EXPECT_EQ(diagnose({folder / "a.nemo"}).error().code, Code::kTarCorrupt);
  EXPECT_EQ(diagnose({folder.path()}).value().next, "shardwright diagnose " + (folder / "a.nemo"))
      << "its folder shows the way";
  EXPECT_EQ(diagnose({folder / "a.txt"}).error().code, Code::kUnknownFormat);
}

TEST(RecordedRun, KnowsBothSpellings) {
  const Arguments megatron = {{"tensor_model_parallel_size", std::int64_t{2}},
                              {"pipeline_model_parallel_size", std::int64_t{3}},
                              {"expert_model_parallel_size", std::int64_t{4}},
                              {"expert_tensor_parallel_size", std::monostate()},
                              {"num_experts", std::int64_t{8}}};
  EXPECT_EQ(recorded_run(megatron).sizes, (AxisSizes{.tensor = 2, .pipeline = 3, .expert = 4}));
  EXPECT_EQ(recorded_run(megatron).experts, 8);
  EXPECT_EQ(writer_of(megatron), "");
  const Arguments aiak = {{"expert_parallel_size", std::int64_t{4}}, {"load_platform", "mcore"}};
  EXPECT_EQ(recorded_run(aiak).sizes.expert, 4);
  EXPECT_THAT(std::string(writer_of(aiak)), HasSubstr("AIAK"));
  EXPECT_FALSE(recorded_run({}).is_present);
}

// The documents and the table are one: a page for each finding in each language, and no other.
TEST(FindingPage, ThereIsOneForEachFindingInBothLanguages) {
  for (const auto& [language, file] : {std::pair{Language::kEnglish, "docs/diagnose.md"},
                                       std::pair{Language::kChinese, "docs/diagnose_zh.md"}}) {
    const std::string guide = read_file(source_path(file));
    std::size_t pages = 0;
    for (const std::string& code : finding_codes()) {
      const std::string page = code_page(code, language).value();
      EXPECT_THAT(page, ::testing::StartsWith(code + " ")) << file;
      EXPECT_THAT(guide, HasSubstr("\n## " + page)) << file;
      EXPECT_GT(page.size(), 60u) << code;
      ++pages;
    }
    std::size_t headings = 0;
    for (std::size_t at = guide.find("\n## L"); at != std::string::npos;
         at = guide.find("\n## L", at + 1)) {
      ++headings;
    }
    EXPECT_EQ(headings, pages) << file;
  }
}

TEST(FindingPage, UnknownCodesGetAHint) {
  EXPECT_THAT(code_page("L7", Language::kEnglish).error().message, HasSubstr("did you mean L"));
  EXPECT_THAT(code_page("SW0308x", Language::kEnglish).error().message,
              HasSubstr("did you mean SW0308?"));
  EXPECT_THAT(code_page("what", Language::kEnglish).error().message,
              HasSubstr("expected L01 to L51 or SW0101 to SW0999"));
  EXPECT_EQ(*code_page("l07", Language::kEnglish), *code_page("L07", Language::kEnglish));
}

// What convert would refuse then is said; rows of a vocabulary are filled up for any size.
TEST(Diagnose, SaysWhichSizesCannotCutTheModel) {
  const std::string hf = golden_path("hf/llama3/hf");
  const std::string run = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  for (const std::string& path : {hf, run}) {
    const auto told = [&](const AxisSizes& sizes) {
      const Diagnosis diagnosis = diagnosed(path, sizes);
      const auto found = std::ranges::find(diagnosis.findings, "L49", &Finding::code);
      if (found == diagnosis.findings.end()) return std::string();
      EXPECT_TRUE(diagnosis.has_errors());
      EXPECT_THAT(diagnosis.findings, ::testing::Each(::testing::Field(&Finding::code, "L49")));
      EXPECT_EQ(diagnosis.next, "shardwright inspect " + diagnosis.path);
      return found->message.english;
    };
    EXPECT_THAT(told({.tensor = 3}), HasSubstr("cannot be cut for the sizes that were given: t"));
    EXPECT_THAT(told({.pipeline = 7}), HasSubstr("at least one per stage of --pp 7"));
    EXPECT_EQ(told({.tensor = 2, .pipeline = 1}), "");
    EXPECT_EQ(told({}), "");
  }
}

// A conversion that cannot tell the model would be refused.
TEST(Diagnose, TheNextCommandNamesTheModelWhereNothingElseDoes) {
  const std::string model = golden_path("hf/llama3/hf");
  ConvertRequest request;
  request.input = model;
  request.format = "torch_dist";
  const TemporaryFolder place;
  request.output = place / "run";
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(diagnosed(place / "run").next,
            "shardwright convert " + (place / "run/iter_0000000") + " OUT --to hf");
  const std::string nobodys =
      golden_path("mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full");
  EXPECT_THAT(diagnosed(nobodys).next, HasSubstr(" OUT --to hf --hf-config MODEL"));
}

}  // namespace
}  // namespace shardwright
