// SPDX-License-Identifier: Apache-2.0
#include "layout/classify_legacy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "layout/legacy_run_fixture.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SimulatedRun kDense{2, 2, 1, 1, 2, false};
constexpr SimulatedRun kExperts{2, 1, 1, 4, 2, true};

LegacyEvidence of(const SimulatedRun& run, SimulatedWriter writer = SimulatedWriter::kToday) {
  return simulate(run, writer).evidence;
}

LegacyEvidence with(LegacyEvidence evidence, const std::function<void(LegacyEvidence&)>& change) {
  change(evidence);
  return evidence;
}

LegacyEvidence believing(LegacyEvidence evidence, AxisSizes believed) {
  evidence.believed = believed;
  return evidence;
}

// The same change to every sample.
LegacyEvidence sampled(LegacyEvidence evidence, const std::function<void(RankSample&)>& change) {
  for (RankSample& sample : evidence.samples) change(sample);
  return evidence;
}

void remove_folder(LegacyEvidence& evidence, std::string_view name) {
  std::erase_if(evidence.folders, [&](const RankFolder& folder) { return folder.name == name; });
  std::erase_if(evidence.samples, [&](const RankSample& sample) { return sample.folder == name; });
}

// Tensors that fit every reading.
void make_plain(RankSample& sample) {
  sample.run = {};
  sample.models = {{{"decoder.layers.0.mlp.linear_fc2.weight", {8, 8}}}};
}

LegacyEvidence open_question() { return sampled(of(kDense), make_plain); }

void put_files(LegacyEvidence& evidence, const std::string& file) {
  for (RankFolder& folder : evidence.folders) folder.files = {{file, 1000}};
}

LegacyEvidence old_optimizer() {
  LegacyEvidence evidence = of({2, 1, 1, 1, 2});
  put_files(evidence, "model_rng.pt");
  for (const char* name :
       {"mp_rank_00_000", "mp_rank_00_001", "mp_rank_01_000", "mp_rank_01_001"}) {
    evidence.folders.push_back(rank_folder(name, "optim.pt"));
  }
  return evidence;
}

struct Row {
  const char* code;
  Severity severity;
  LegacyEvidence evidence;
  const char* english;
  const char* chinese;
};

std::vector<Row> rows_about_callers();
std::vector<Row> rows_about_folders();
std::vector<Row> rows_about_contents();

class Findings : public ::testing::TestWithParam<std::vector<Row> (*)()> {};

TEST_P(Findings, SayThisInBothLanguages) {
  for (const Row& row : GetParam()()) {
    const Diagnosis diagnosis = classify_legacy(row.evidence).diagnosis;
    const auto found = std::ranges::find(diagnosis.findings, row.code, &Finding::code);
    if (found == diagnosis.findings.end()) {
      std::string codes;
      for (const Finding& finding : diagnosis.findings) codes += " " + finding.code;
      ADD_FAILURE() << row.code << " is not among" << codes;
      continue;
    }
    EXPECT_EQ(found->severity, row.severity) << row.code;
    EXPECT_EQ(found->message.english, row.english);
    EXPECT_EQ(found->message.chinese, row.chinese);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Findings,
                         ::testing::Values(rows_about_callers, rows_about_folders,
                                           rows_about_contents));

std::vector<Row> rows_about_callers() {
  const AxisSizes pipeline{.pipeline = 2};
  return {
      {"L01", Severity::kInfo, believing(of(kDense), pipeline),
       "A loader that takes PP>1 for three coordinates expects mp_rank_{tp}_{pp}_{ep}, but this "
       "checkpoint only has mp_rank_{tp}_{pp}. PP does not add an expert coordinate; use the "
       "non-EP reader.",
       "若加载器因 PP>1 而按 mp_rank_{tp}_{pp}_{ep} 查找，则找不到：该 checkpoint 只有 "
       "mp_rank_{tp}_{pp}。PP 不会增加 expert 坐标，请使用非 EP 读取方式。"},
      {"L01", Severity::kWarning, believing(of(kDense), {.pipeline = 2, .expert = 1}),
       "A loader that takes PP>1 for three coordinates expects mp_rank_{tp}_{pp}_{ep}, but this "
       "checkpoint only has mp_rank_{tp}_{pp}. PP does not add an expert coordinate; use the "
       "non-EP reader.",
       "若加载器因 PP>1 而按 mp_rank_{tp}_{pp}_{ep} 查找，则找不到：该 checkpoint 只有 "
       "mp_rank_{tp}_{pp}。PP 不会增加 expert 坐标，请使用非 EP 读取方式。"},
      {"L01", Severity::kError, believing(of(kDense), {.pipeline = 2, .expert = 4}),
       "A loader that takes PP>1 for three coordinates expects mp_rank_{tp}_{pp}_{ep}, but this "
       "checkpoint only has mp_rank_{tp}_{pp}. PP does not add an expert coordinate; use the "
       "non-EP reader.",
       "若加载器因 PP>1 而按 mp_rank_{tp}_{pp}_{ep} 查找，则找不到：该 checkpoint 只有 "
       "mp_rank_{tp}_{pp}。PP 不会增加 expert 坐标，请使用非 EP 读取方式。"},
      {"L02", Severity::kInfo, believing(of(kExperts), {.expert = 4}),
       "EP=4 with PP=1: Megatron writes mp_rank_{tp}_{ep} (two coordinates). Read the second "
       "coordinate as EP, not PP; do not require three.",
       "EP=4 且 PP=1 时，Megatron 写出的是 mp_rank_{tp}_{ep}（两个坐标）。第二个坐标应按 EP 而不是 "
       "PP 读取，不要强制要求三维。"},
      {"L03", Severity::kInfo, believing(of(kDense), {.expert = 1}),
       "An expert parallel size of 1 adds no directory coordinate; treat it as \"no EP\".",
       "专家并行大小为 1 时目录名中没有它的坐标，应视为未启用 EP。"},
      {"L04", Severity::kWarning, open_question(),
       "Directories have two coordinates and no usable args: either (tp,pp) or (tp,ep). Evidence "
       "so far: read without running anything: mp_rank_00_000, mp_rank_00_001, mp_rank_01_000, "
       "mp_rank_01_001. Pass --pp or --ep to confirm.",
       "目录只有两个坐标且无可用 args：可能是 (tp,pp) 或 "
       "(tp,ep)。现有证据：只读不执行：mp_rank_00_000, mp_rank_00_001, mp_rank_01_000, "
       "mp_rank_01_001。请用 --pp 或 --ep 指定。"},
      {"L05", Severity::kError, believing(of(kDense), {.tensor = 4, .pipeline = 2}),
       "Runtime TP/PP/EP/ETP = 4/2/-/- but disk holds 2/2/1/1. Legacy checkpoints do not reshard "
       "on load; convert first: shardwright convert ckpt OUT --to legacy --tp 4 --pp 2",
       "运行参数 TP/PP/EP/ETP = 4/2/-/-，磁盘为 2/2/1/1。legacy checkpoint "
       "加载时不能重新切分，请先转换：shardwright convert ckpt OUT --to legacy --tp 4 --pp 2"},
      {"L11", Severity::kError, believing(of({1, 2, 2, 1, 1}), {.virtual_pipeline = 4}),
       "Shard contains 2 virtual chunks (model0..model1) but VPP=4 was requested.",
       "分片包含 2 个虚拟段（model0..model1），但请求的 VPP=4。"},
      {"L11", Severity::kError, believing(of(kDense), {.virtual_pipeline = 2}),
       "Shard contains 1 virtual chunks (model) but VPP=2 was requested.",
       "分片包含 1 个虚拟段（model），但请求的 VPP=2。"},
      {"L19", Severity::kInfo, of(kExperts),
       "Shards hold different local experts under the same names; reading only ep=0 would drop 75% "
       "of experts. Pass --ep 4 and read with the EP-aware loader.",
       "各分片在相同名字下保存不同的本地专家；只读 ep=0 会丢失 75% 的专家。请传入 --ep "
       "4，并使用支持 EP 的读取方式。"},
      {"L19", Severity::kError, believing(of(kExperts), {.tensor = 2}),
       "Shards hold different local experts under the same names; reading only ep=0 would drop 75% "
       "of experts. Pass --ep 4 and read with the EP-aware loader.",
       "各分片在相同名字下保存不同的本地专家；只读 ep=0 会丢失 75% 的专家。请传入 --ep "
       "4，并使用支持 EP 的读取方式。"},
      {"L32", Severity::kError, believing(of(kDense), {.expert = 8}),
       "EP=8 asks for the EP-aware loader, but the disk shows no experts split by EP; drop --ep.",
       "EP=8 要求使用支持 EP 的读取方式，但磁盘上没有按 EP 切分的专家；请去掉 --ep。"},
  };
}

std::vector<Row> rows_about_folders() {
  constexpr SimulatedRun kSparse{2, 1, 1, 4, 1, true};
  constexpr SimulatedRun kLost{4, 1, 1, 2, 1, true};
  return {
      {"L06", Severity::kInfo, of(kSparse),
       "ETP=1 with TP=2: only 4 of 8 (tp,ep) directories exist by design; none of the others "
       "belongs to a rank.",
       "ETP=1、TP=2：按设计 8 个 (tp,ep) 组合中只存在 4 个目录，其余不对应任何 rank。"},
      {"L07", Severity::kError, of(kLost, SimulatedWriter::kBeforeCore19),
       "Dense shards for tp=2,3 were never written (Megatron before core 0.19 with TP > ETP×EP, PR "
       "#4678). They cannot be recovered from this checkpoint.",
       "tp=2,3 的 dense 分片从未写出（core 0.19 之前的 Megatron 在 TP > ETP×EP 时的缺陷，PR "
       "#4678），无法从该 checkpoint 恢复。"},
      {"L08", Severity::kError, of({1, 1, 1, 2, 2, true}, SimulatedWriter::kEveryRank),
       "ETP=2 > TP=1 cannot be stored in mp_rank naming; expert slices overwrote each other.",
       "ETP=2 > TP=1 无法用 mp_rank 命名表示，专家切片已互相覆盖。"},
      {"L09", Severity::kError,
       with(of(kDense), [](LegacyEvidence& e) { remove_folder(e, "mp_rank_01_001"); }),
       "Missing shard (tp=1,pp=1); found 3 of 4.", "缺少分片 (tp=1,pp=1)；已找到 3/4。"},
      {"L10", Severity::kWarning, old_optimizer(),
       "The last coordinate is the data-parallel rank of an old distributed optimizer (optim.pt), "
       "not EP.",
       "最后一个坐标是旧版分布式优化器的数据并行 rank（optim.pt），不是 EP。"},
      {"L10", Severity::kWarning,
       with(of({1, 1, 1, 1, 1}),
            [](LegacyEvidence& e) {
              e.folders.push_back(rank_folder("mp_rank_00_000_000_000", "distrib_optim.pt"));
            }),
       "The third coordinate is the data-parallel rank of AIAK's optimizer (distrib_optim.pt), not "
       "EP.",
       "第三个坐标是 AIAK 优化器的数据并行 rank（distrib_optim.pt），不是 EP。"},
      {"L27", Severity::kError,
       with(of(kDense), [](LegacyEvidence& e) { e.folders.push_back(rank_folder("mp_rank_00")); }),
       "Two saves are mixed in one directory: mp_rank_00 and mp_rank_00_000. Keep one of them.",
       "同一目录混有两次保存：mp_rank_00 与 mp_rank_00_000。请只保留其中之一。"},
      {"L27", Severity::kError,
       with(of(kDense), [](LegacyEvidence& e) { e.samples[1].iteration = 7; }),
       "Two saves are mixed in one directory: mp_rank_00_000 (iteration 10, TP/PP/EP/ETP = "
       "2/2/1/2) and mp_rank_00_001 (iteration 7, TP/PP/EP/ETP = 2/2/1/2). Keep one of them.",
       "同一目录混有两次保存：mp_rank_00_000 (iteration 10, TP/PP/EP/ETP = 2/2/1/2) 与 "
       "mp_rank_00_001 (iteration 7, TP/PP/EP/ETP = 2/2/1/2)。请只保留其中之一。"},
      {"L27", Severity::kError,
       with(of(kDense), [](LegacyEvidence& e) { e.folders.push_back(rank_folder("mp_rank_0_1")); }),
       "Two saves are mixed in one directory: TP/PP/EP/ETP = 2/2/1/1 and mp_rank_0_1 beyond these "
       "(1 in all). Keep one of them.",
       "同一目录混有两次保存：TP/PP/EP/ETP = 2/2/1/1 与 此外的 mp_rank_0_1（共 1 "
       "个）。请只保留其中之一。"},
      {"L28", Severity::kInfo, with(of(kDense), [](LegacyEvidence& e) { e.leftovers = {"tmp"}; }),
       "tmp in the checkpoint is left over from an interrupted tool; it is ignored.",
       "checkpoint 中的 tmp 是工具中断后的残留，已忽略。"},
      {"L29", Severity::kWarning,
       with(of(kDense), [](LegacyEvidence& e) { put_files(e, "distrib_optim.pt"); }),
       "The mp_rank_* folders hold no model, only distrib_optim.pt; nothing here is a model shard.",
       "mp_rank_* 目录中没有模型，只有 distrib_optim.pt；这里没有模型分片。"},
      {"L29", Severity::kWarning,
       with(of(kDense), [](LegacyEvidence& e) { put_files(e, "train_dataloader_dprank000.pt"); }),
       "The mp_rank_* folders hold no model, only train_dataloader_dprank*.pt; nothing here is a "
       "model shard.",
       "mp_rank_* 目录中没有模型，只有 train_dataloader_dprank*.pt；这里没有模型分片。"},
      {"L30", Severity::kError, sampled(of(kDense), [](RankSample& s) { s.run.sizes.expert = 4; }),
       "args record TP/PP/EP/ETP = 2/2/4/2, whose folders are mp_rank_{tp:02d}_{pp:03d}_{ep:03d}; "
       "the folders here are mp_rank_{tp:02d}_{pp:03d}.",
       "args 记录的 TP/PP/EP/ETP = 2/2/4/2，其目录应为 "
       "mp_rank_{tp:02d}_{pp:03d}_{ep:03d}；实际目录为 mp_rank_{tp:02d}_{pp:03d}。"},
      {"L31", Severity::kWarning, of({3, 1, 1, 2, 1, true}),
       "All data are there, but a Megatron run of TP=3 EP=2 ETP=1 also asks for mp_rank_00_001, "
       "which no rank writes; rename or convert before loading.",
       "数据完整，但 TP=3 EP=2 ETP=1 的 Megatron 还会读取从未写出的 "
       "mp_rank_00_001；加载前请改名或转换。"},
      {"L36", Severity::kWarning,
       with(of({1, 2, 1, 2, 1, true}),
            [](LegacyEvidence& e) {
              for (const char* name : {"mp_rank_00_001_000", "mp_rank_00_001_001"}) {
                remove_folder(e, name);
              }
              for (RankSample& s : e.samples) s.run.sizes.pipeline = 1;
            }),
       "Names have three numbers although PP=1 (LLaVA-OneVision-2's tools write this); Megatron "
       "itself looks for mp_rank_{tp:02d}_{ep:03d}.",
       "PP=1 却使用三个数字命名（LLaVA-OneVision-2 的工具如此写）；Megatron 本身查找 "
       "mp_rank_{tp:02d}_{ep:03d}。"},
  };
}

std::vector<Row> rows_about_contents() {
  const auto set_layers = [](LegacyEvidence& e, std::int64_t first) {
    for (RankSample& s : e.samples) {
      SimulatedRun run = kDense;
      const bool is_first = s.folder.ends_with("_000");
      run.layers_per_stage = is_first ? first : 4;
      s = rank_sample(s.folder, run, is_first ? 0 : 1);
    }
  };
  return {
      {"L12", Severity::kInfo, with(of(kDense), [&](LegacyEvidence& e) { set_layers(e, 2); }),
       "Stage layer counts on disk are [2,4]; the even split would be [3,3]. Pass the recorded "
       "layout.",
       "磁盘上各 stage 层数为 [2,4]，均分应为 [3,3]，请使用记录的切分方案。"},
      {"L12", Severity::kInfo, with(of(kDense), [&](LegacyEvidence& e) { set_layers(e, 3); }),
       "Stage layer counts on disk are [3,4]; the even split would be none, 7 layers do not divide "
       "by 2. Pass the recorded layout.",
       "磁盘上各 stage 层数为 [3,4]，均分应为 不存在（7 层不能被 2 整除），请使用记录的切分方案。"},
      {"L13", Severity::kInfo, with(of(kDense), [&](LegacyEvidence& e) { set_layers(e, 0); }),
       "Stage 0 has no decoder layers (vision/embedding only); this is valid.",
       "stage 0 没有 decoder 层（仅视觉/embedding），属正常情况。"},
      {"L16", Severity::kWarning,
       with(of(kDense), [](LegacyEvidence& e) { put_files(e, "model_rng.pt"); }),
       "Found model_rng.pt where model_optim_rng.pt is expected.",
       "期望 model_optim_rng.pt，实际为 model_rng.pt。"},
      {"L16", Severity::kWarning,
       with(of(kDense), [](LegacyEvidence& e) { put_files(e, "model.pt"); }),
       "Found model.pt where model_optim_rng.pt is expected.",
       "期望 model_optim_rng.pt，实际为 model.pt。"},
      {"L17", Severity::kWarning,
       believing(sampled(of(kDense),
                         [](RankSample& s) {
                           s.run.vocabulary = 125;
                           s.run.vocabulary_divisor = 64;
                         }),
                 {.tensor = 4}),
       "Padded vocab 128 on disk vs 256 required for TP=4; rows ≥ 125 are padding (policy: "
       "unknown, no bytes were read).",
       "磁盘 padded vocab 为 128，TP=4 需要 256；第 125 行之后为填充（策略：未知，未读取字节）。"},
      {"L18", Severity::kError,
       sampled(of(kExperts),
               [](RankSample& s) {
                 std::erase_if(s.models[0], [](const SampledTensor& t) {
                   return t.name.find("router") != std::string::npos;
                 });
                 s.run.experts = 7;
               }),
       "num_experts=7 is not divisible by EP=4.", "num_experts=7 不能被 EP=4 整除。"},
      {"L20", Severity::kWarning,
       with(of(kDense),
            [](LegacyEvidence& e) {
              e.repeated = {{"vision_model.patch_embed.proj.weight", "(8192, 3, 14, 14)"}};
            }),
       "vision_model.patch_embed.proj.weight: all TP shards are identical; it is replicated, not "
       "sharded. Concatenation would give (8192, 3, 14, 14).",
       "vision_model.patch_embed.proj.weight：所有 TP "
       "分片完全相同，属复制而非切分；拼接会得到错误形状 (8192, 3, 14, 14)。"},
      {"L21", Severity::kError,
       with(of(kExperts),
            [](LegacyEvidence& e) {
              e.differing = {{"mp_rank_00_000", "mp_rank_00_001",
                              "decoder.layers.0.mlp.router.weight", "ep", 200, 3, 17}};
            }),
       "decoder.layers.0.mlp.router.weight must be identical across ep (mp_rank_00_000, "
       "mp_rank_00_001) but differs in 3 bytes (first at 17).",
       "decoder.layers.0.mlp.router.weight 在 ep (mp_rank_00_000, mp_rank_00_001) 上应一致，但有 3 "
       "字节不同（首个偏移 17）。"},
      {"L24", Severity::kInfo,
       sampled(of(kDense),
               [](RankSample& s) { s.models[0].push_back({"decoder.hc_head_fn", {4, 64}}); }),
       "hc_head.* is replicated; a name rule on \"head\" wrongly marks it as sharded (found "
       "decoder.hc_head_fn).",
       "hc_head.* 是复制张量；按 \"head\" 匹配的规则会误判为切分（发现 decoder.hc_head_fn）。"},
      {"L25", Severity::kInfo,
       sampled(of({4, 1, 1, 1, 4}), [](RankSample& s) { s.run.encoder_tensor = 2; }),
       "Encoder TP=2 differs from language TP=4; shards repeat with period 2.",
       "编码器 TP=2 与语言模型 TP=4 不同，分片以 2 为周期重复。"},
      {"L40", Severity::kError,
       with(of(kDense),
            [](LegacyEvidence& e) {
              constexpr std::array<std::int64_t, 4> kRanks = {1, 2, 0, 3};
              for (std::size_t i = 0; i < kRanks.size(); ++i) {
                e.samples[i].run.rank = kRanks[i];
                e.samples[i].run.world = 4;
              }
            }),
       "mp_rank_00_000 holds another rank's file: its arguments say that rank 1 of 4 wrote it, "
       "whose folder is mp_rank_01_000. Folders were renamed, swapped or copied; give each file "
       "back its rank's folder.",
       "mp_rank_00_000 中是另一个 rank 的文件：其 args 记录它由 rank 1（共 4）写出，应在 "
       "mp_rank_01_000。目录被改名、互换或复制过，请把每个文件放回其 rank 的目录。"},
      {"L33", Severity::kError,
       sampled(of({1, 1, 1, 1, 1, true}),
               [](RankSample& s) {
                 s.models[0][2].shape = {8, 16};
                 s.models[0][6].shape = {8, 16};
               }),
       "The router has 8 experts, but 1 ranks with 2 local experts hold 2.",
       "router 有 8 个专家，但 1 个 rank、每个 2 个本地专家，共 2 个。"},
      {"L35", Severity::kError,
       with(of(kDense),
            [](LegacyEvidence& e) {
              e.unreadable = {{"mp_rank_00_000/model_optim_rng.pt", "error[SW0210]: cut"}};
            }),
       "mp_rank_00_000/model_optim_rng.pt cannot be read: error[SW0210]: cut",
       "mp_rank_00_000/model_optim_rng.pt 无法读取：error[SW0210]: cut"},
      {"L35", Severity::kError,
       with(of(kDense), [](LegacyEvidence& e) { e.folders[0].files[0].bytes = 0; }),
       "mp_rank_00_000/model_optim_rng.pt cannot be read: it has no bytes",
       "mp_rank_00_000/model_optim_rng.pt 无法读取：文件为空"},
  };
}

TEST(ClassifyLegacy, AsksForBytesWhereNothingElseDecides) {
  LegacyEvidence evidence = open_question();
  const LegacyVerdict open = classify_legacy(evidence);
  EXPECT_EQ(open.diagnosis.confidence, Confidence::kAmbiguous);
  EXPECT_EQ(open.diagnosis.layout, LayoutClass::kNone);
  EXPECT_EQ(open.diagnosis.disk_arity, 2);
  EXPECT_THAT(open.diagnosis.coordinates, ElementsAre("tp", "pp|ep"));
  EXPECT_EQ(open.diagnosis.sizes, (AxisSizes{.tensor = 2, .virtual_pipeline = 1}));
  EXPECT_THAT(open.diagnosis.reason.english, HasSubstr("(tp,pp) or (tp,ep)"));
  EXPECT_EQ(open.diagnosis.next, "shardwright diagnose ckpt --pp 2");
  ASSERT_TRUE(open.question);
  EXPECT_EQ(open.question->first, "mp_rank_00_000");
  EXPECT_EQ(open.question->second, "mp_rank_00_001");

  evidence.verdict = ReplicaVerdict{"mp_rank_00_000", "mp_rank_00_001", "a", "", 64, 9, 1};
  evidence.bytes_compared = 128;
  const LegacyVerdict differs = classify_legacy(evidence);
  EXPECT_THAT(differs.diagnosis.coordinates, ElementsAre("tp", "pp"));
  EXPECT_EQ(differs.diagnosis.confidence, Confidence::kLikely);
  EXPECT_THAT(differs.diagnosis.evidence.back().english, HasSubstr("128 bytes"));
  EXPECT_FALSE(differs.question);

  evidence.verdict->differing = 0;
  EXPECT_THAT(classify_legacy(evidence).diagnosis.coordinates, ElementsAre("tp", "dp"));
  for (RankSample& sample : evidence.samples) {
    sample.models[0].push_back({"decoder.layers.0.mlp.experts.weight1", {8, 8}});
  }
  EXPECT_THAT(classify_legacy(evidence).diagnosis.coordinates, ElementsAre("tp", "ep"));
}

TEST(ClassifyLegacy, TakesTheCallersWordWhereItMust) {
  const LegacyEvidence open = open_question();
  EXPECT_THAT(classify_legacy(believing(open, {.pipeline = 2})).diagnosis.coordinates,
              ElementsAre("tp", "pp"));
  const Diagnosis expert = classify_legacy(believing(open, {.expert = 2})).diagnosis;
  EXPECT_THAT(expert.coordinates, ElementsAre("tp", "ep"));
  EXPECT_EQ(expert.layout, LayoutClass::kExpert);
  EXPECT_EQ(expert.confidence, Confidence::kLikely);
  EXPECT_EQ(classify_legacy(believing(open, {.pipeline = 2, .expert = 2})).diagnosis.confidence,
            Confidence::kAmbiguous);
}

// A tied embedding is on the last stage too.
TEST(ClassifyLegacy, OneEndThatIsNotEverywhereIsAStage) {
  const LegacyEvidence tied = sampled(of(kDense), [](RankSample& sample) {
    sample.run = {};
    sample.models[0].push_back({"embedding.word_embeddings.weight", {64, 16}});
  });
  const Diagnosis diagnosis = classify_legacy(tied).diagnosis;
  EXPECT_THAT(diagnosis.coordinates, ElementsAre("tp", "pp"));
  EXPECT_EQ(diagnosis.confidence, Confidence::kLikely);
}

// Llama 3.2 Vision's embedding has rows of its own behind those of its head. A head for rewards
// tells nothing.
TEST(ClassifyLegacy, CountsTheVocabularyByAHeadOfTokens) {
  const auto finding_of = [](std::int64_t head_rows, std::int64_t tokens) {
    const LegacyEvidence evidence = sampled(of(kDense), [&](RankSample& sample) {
      sample.run.vocabulary = tokens;
      sample.run.vocabulary_divisor = 4;
      const bool is_last = sample.models[0].back().name == "decoder.final_layernorm.weight";
      if (is_last) sample.models[0].push_back({"output_layer.weight", {head_rows, 16}});
    });
    for (const Finding& finding : classify_legacy(evidence).diagnosis.findings) {
      if (finding.code == "L17") return finding.message.english;
    }
    return std::string();
  };
  EXPECT_EQ(finding_of(60, 118), "");
  EXPECT_THAT(finding_of(60, 111), HasSubstr("120 on disk vs 112 required"));
  EXPECT_THAT(finding_of(64, 118), HasSubstr("128 on disk vs 120 required"));
  EXPECT_THAT(finding_of(1, 118), HasSubstr("128 on disk vs 120 required"));
}

// 65 words of a null tokenizer that was told 64 need a second step of 64 rows.
TEST(ClassifyLegacy, CountsTheWordsOfANullTokenizerByTheRows) {
  const auto findings_of = [](std::int64_t told, NullTokenizer tokenizer) {
    const LegacyEvidence evidence = sampled(of(kDense), [&](RankSample& sample) {
      sample.run.vocabulary = told;
      sample.run.vocabulary_divisor = 32;
      sample.run.null_tokenizer = tokenizer;
    });
    std::vector<std::string> found;
    for (const Finding& finding : classify_legacy(evidence).diagnosis.findings) {
      if (finding.code == "L17") found.push_back(finding.message.english);
    }
    return found;
  };
  // On disk are 128 rows, for two tensor ranks.
  EXPECT_THAT(findings_of(64, NullTokenizer::kCountsWhatItIsTold), IsEmpty());
  EXPECT_THAT(findings_of(64, NullTokenizer::kNone), Not(IsEmpty()));
  EXPECT_THAT(findings_of(128, NullTokenizer::kCountsOneMore), IsEmpty());
}

// The router says how many expert ranks there were, so that the last one can be missed.
TEST(ClassifyLegacy, MissesTheLastExpertRankWithoutArguments) {
  SimulatedRun run{2, 1, 1, 4, 2, true};
  run.has_arguments = false;
  LegacyEvidence evidence = of(run);
  remove_folder(evidence, "mp_rank_00_003");
  remove_folder(evidence, "mp_rank_01_003");
  const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
  EXPECT_EQ(diagnosis.sizes.expert, 4);
  EXPECT_EQ(diagnosis.complete, false);
  EXPECT_THAT(diagnosis.missing, ElementsAre("mp_rank_00_003", "mp_rank_01_003"));
}

// Unreadable files leave names only.
TEST(ClassifyLegacy, NamesAloneSettleOnlyASparseGrid) {
  LegacyEvidence evidence = of({2, 1, 1, 4, 1, true});
  evidence.samples.clear();
  const Diagnosis sparse = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(sparse.coordinates, ElementsAre("tp", "ep"));
  EXPECT_EQ(sparse.sizes.expert_tensor, 1);
  EXPECT_EQ(sparse.confidence, Confidence::kLikely);
  evidence = of(kDense);
  evidence.samples.clear();
  EXPECT_EQ(classify_legacy(evidence).diagnosis.confidence, Confidence::kAmbiguous);
}

TEST(ClassifyLegacy, BelievesTensorsMoreThanArguments) {
  const LegacyEvidence evidence = sampled(of(kDense), [](RankSample& sample) {
    sample.run.sizes.pipeline = 1;
    sample.run.sizes.expert = 2;
  });
  const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(diagnosis.coordinates, ElementsAre("tp", "pp"));
  EXPECT_EQ(diagnosis.confidence, Confidence::kLikely);
  EXPECT_EQ(diagnosis.sizes.pipeline, 2);
  EXPECT_TRUE(std::ranges::any_of(diagnosis.findings,
                                  [](const Finding& finding) { return finding.code == "L30"; }));
}

// One that was left over has the arguments of the run too.
TEST(ClassifyLegacy, RanksBeyondTheRecordedSizesAreOfAnotherSave) {
  for (const auto& [beyond, like] :
       {std::pair{"mp_rank_02", "mp_rank_00"}, std::pair{"mp_rank_02_001", "mp_rank_00_001"}}) {
    const bool is_staged = std::string_view(beyond).size() > 10;
    LegacyEvidence evidence = of({2, is_staged ? 2 : 1, 1, 1, 1});
    evidence.folders.push_back(rank_folder(beyond));
    const auto sample = std::ranges::find(evidence.samples, like, &RankSample::folder);
    if (sample != evidence.samples.end()) {
      RankSample again = *sample;
      again.folder = beyond;
      evidence.samples.push_back(again);
    }
    const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
    EXPECT_EQ(diagnosis.sizes.tensor, 2) << beyond;
    EXPECT_THAT(diagnosis.unexpected, ElementsAre(beyond));
    EXPECT_TRUE(std::ranges::any_of(diagnosis.findings, [](const Finding& finding) {
      return finding.code == "L27";
    })) << beyond;
  }
}

TEST(ClassifyLegacy, ExpertRanksOfAModelWithoutExpertsHoldCopies) {
  const Diagnosis diagnosis = classify_legacy(of({1, 1, 1, 2, 1})).diagnosis;
  EXPECT_FALSE(diagnosis.has_errors());
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_NE(finding.code, "L19");
    EXPECT_NE(finding.code, "L30");
  }
}

TEST(ClassifyLegacy, ADataParallelNumberIsNoExpertNumber) {
  const Diagnosis old = classify_legacy(old_optimizer()).diagnosis;
  EXPECT_EQ(old.layout, LayoutClass::kTensor);
  EXPECT_EQ(old.disk_arity, 1);
  EXPECT_THAT(old.coordinates, ElementsAre("tp", "dp"));
  EXPECT_EQ(old.sizes.data, 2);
  EXPECT_EQ(old.complete, true);
  EXPECT_THAT(old.findings, ::testing::SizeIs(1)) << "model_rng.pt belongs to it";

  // Models with a data-parallel number: no experts, whole in each folder.
  LegacyEvidence evidence = of({1, 2, 1, 3, 1, true});
  for (RankSample& sample : evidence.samples) {
    sample = rank_sample(sample.folder, {1, 2, 1, 1, 1, false}, sample.folder[13] - '0');
  }
  const Diagnosis models = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(models.coordinates, ElementsAre("tp", "pp", "dp"));
  EXPECT_EQ(models.layout, LayoutClass::kPipeline);
  EXPECT_EQ(models.sizes.data, 3);
  EXPECT_EQ(models.sizes.expert, 1);
  remove_folder(evidence, "mp_rank_00_001_002");
  EXPECT_EQ(classify_legacy(evidence).diagnosis.complete, true) << "two copies are left";
  remove_folder(evidence, "mp_rank_00_001_001");
  remove_folder(evidence, "mp_rank_00_001_000");
  EXPECT_EQ(classify_legacy(evidence).diagnosis.complete, false);
}

TEST(ClassifyLegacy, FoldersWithoutAModelAreNoShards) {
  LegacyEvidence evidence = of(kDense);
  put_files(evidence, "distrib_optim.pt");
  const Diagnosis optimizer = classify_legacy(evidence).diagnosis;
  EXPECT_EQ(optimizer.format, "optimizer");
  EXPECT_EQ(optimizer.layout, LayoutClass::kNone);
  EXPECT_THAT(optimizer.coordinates, IsEmpty());
  put_files(evidence, "train_dataloader_dprank001.pt");
  EXPECT_EQ(classify_legacy(evidence).diagnosis.format, "dataloader");
  // Beside models they change nothing.
  LegacyEvidence mixed = of(kDense);
  mixed.folders.push_back(rank_folder("mp_rank_00_000_000", "train_dataloader_dprank001.pt"));
  const Diagnosis diagnosis = classify_legacy(mixed).diagnosis;
  EXPECT_EQ(diagnosis.disk_arity, 2);
  EXPECT_THAT(diagnosis.findings, IsEmpty());
}

TEST(ClassifyLegacy, SaysWhatToTypeNext) {
  const auto next = [](const LegacyEvidence& evidence) {
    return classify_legacy(evidence).diagnosis.next;
  };
  EXPECT_EQ(next(of(kDense)), "shardwright convert ckpt OUT --to torch_dist --tp 2 --pp 2");
  EXPECT_EQ(next(believing(of(kExperts), {.tensor = 2})),
            "shardwright diagnose ckpt --tp 2 --ep 4");
  EXPECT_EQ(next(believing(of(kExperts), {.expert = 4})),
            "shardwright convert ckpt OUT --to torch_dist --tp 2 --ep 4");
  EXPECT_EQ(next(believing(of({2, 1, 1, 4, 1, true}), {.tensor = 4, .expert = 4})),
            "shardwright convert ckpt OUT --to legacy --tp 4 --ep 4 --etp 1");
  LegacyEvidence cut = of(kDense);
  remove_folder(cut, "mp_rank_00_001");
  EXPECT_EQ(next(cut), "shardwright verify ckpt");
}

TEST(ClassifyLegacy, IsNotMisledByHostileNumbers) {
  LegacyEvidence evidence = of(kDense);
  evidence.folders.push_back(rank_folder("mp_rank_9223372036854775807_000"));
  const Diagnosis diagnosis = classify_legacy(evidence).diagnosis;
  EXPECT_THAT(diagnosis.unexpected, ElementsAre("mp_rank_9223372036854775807_000"));
  EXPECT_EQ(diagnosis.sizes.tensor, 2);
  evidence.folders.push_back(rank_folder("mp_rank_1000001_000"));
  EXPECT_EQ(classify_legacy(evidence).diagnosis.sizes.tensor, 2);
  const LegacyEvidence huge = sampled(of(kExperts), [](RankSample& sample) {
    sample.run.sizes = {.tensor = std::int64_t{1} << 62, .expert = -5, .expert_tensor = 0};
  });
  EXPECT_EQ(classify_legacy(huge).diagnosis.sizes.tensor, 2);
  const LegacyEvidence wide = sampled(of(kExperts), [](RankSample& sample) {
    sample.run.sizes = {.tensor = 65'535, .expert = 65'536, .expert_tensor = 65'535};
  });
  EXPECT_EQ(classify_legacy(wide).diagnosis.complete, std::nullopt);
}

}  // namespace
}  // namespace shardwright
