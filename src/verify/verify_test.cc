// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "codec/sha256.h"
#include "convert/legacy_golden.h"
#include "layout/state_name.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

VerifyReport verify(const std::string& path, const VerifyOptions& options = {}) {
  const auto report = verify_checkpoint(path, options);
  EXPECT_TRUE(report) << (report ? "" : report.error().text());
  return report.value_or(VerifyReport{});
}

std::vector<Code> codes_of(const VerifyReport& report) {
  std::vector<Code> codes;
  for (const VerifyFinding& finding : report.findings) codes.push_back(finding.code);
  return codes;
}

// What the real software wrote is right.
TEST(Verify, FindsNothingInSoundCheckpoints) {
  for (const char* path : {"hf/llama3/hf", "hf/llama3/legacy_tp2pp2ep1",
                           "hf/llama3_4l/legacy_tp1pp2ep1vpp2", "hf/mixtral/hf", "hf/qwen3_moe/hf",
                           "hf/deepseek_v3/hf", "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full",
                           "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket",
                           "mcore/dense_te/v0.20.0dev/tp2pp1dp2-torch_dist-full"}) {
    const VerifyReport report = verify(golden_path(path));
    for (const VerifyFinding& finding : report.findings) {
      ADD_FAILURE() << path << ": " << finding.message;
    }
    EXPECT_THAT(report.proven,
                Contains(Field(&Phrase::english, HasSubstr("are stored exactly once"))))
        << path;
  }
}

// Where a file lies in another's place or is of another save, its own bytes don't show it.
TEST(Verify, SaysWhatFilesDoNotTell) {
  const TemporaryFolder place;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = place / "one";
  request.format = "dcp";
  ASSERT_TRUE(convert_now(request));
  constexpr const char* kRanks = "the files do not say which ranks or save they are of";
  constexpr const char* kSave = "the files do not say which save they are of";
  const std::vector<std::pair<std::string, const char*>> told = {
      {golden_path("dcp/fsdp2_uneven/ckpt"), kRanks},
      {place / "one", kSave},
      {golden_path("hf/llama3/legacy_tp2pp2ep1"), kSave},
      {golden_path("hf/llama3/hf"), nullptr}};
  for (const auto& [path, note] : told) {
    std::vector<std::string> found;
    for (const std::string& line : verify(path).notes) {
      if (line.starts_with("the files do not say which save") || line.starts_with(kRanks)) {
        found.push_back(line.substr(0, line.find(':')));
      }
      EXPECT_THAT(line, testing::Not(HasSubstr(".distcp: a bit"))) << path;
    }
    EXPECT_EQ(found, note == nullptr ? std::vector<std::string>() : std::vector{std::string(note)})
        << path;
  }
}

TEST(Verify, RefusesAFamilyThatIsNone) {
  const std::string path = golden_path("hf/llama3/legacy_tp2pp2ep1");
  VerifyOptions options;
  options.proof.choice.family = "nosuch";
  const auto unknown = verify_checkpoint(path, options);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kNoFamily);
  options.proof.choice.family.clear();
  options.proof.choice.hf_config_dir = "/nonexistent";
  const auto nowhere = verify_checkpoint(path, options);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::kNotFound);
}

TEST(Verify, CollectsEverythingThatIsWrong) {
  const Planted planted;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 2, 1, 1, 2}, planted.path());
  const auto norm = show_tensor(planted.path(), "decoder.final_layernorm.weight", {}).value();
  planted.flip("iter_0000000/" + norm.files[0], norm.chunks[0].range.offset);
  planted.edit_metadata([](Catalog& catalog) {
    edit_chunks(catalog, "output_layer.weight", [](auto& chunks) { chunks.pop_back(); });
    edit_chunks(catalog, "decoder.layers.self_attention.linear_qkv.weight",
                [](auto& chunks) { chunks.back().box.origin[1] += 8; });
    edit_chunks(catalog, "decoder.layers.self_attention.linear_proj.weight",
                [](auto& chunks) { chunks.back().box.origin[2] -= 8; });
  });
  planted.put("latest_checkpointed_iteration.txt", "12");
  const VerifyReport report = verify(planted.path() + "/iter_0000000");
  EXPECT_THAT(codes_of(report),
              ::testing::IsSupersetOf({Code::kPayloadDamaged, Code::kHole, Code::kOutOfBounds,
                                       Code::kOverlap, Code::kTrackerBroken}));
  EXPECT_TRUE(report.has_errors());
}

TEST(Verify, SaysWhatGuardsThePayload) {
  const VerifyReport hf = verify(golden_path("hf/llama3/hf"));
  EXPECT_THAT(hf.notes, Contains(AllOf(HasSubstr("nothing guards config.json"),
                                       HasSubstr("model.safetensors"))));
  EXPECT_EQ(hf.payloads_checked, 0u);
  const VerifyReport legacy = verify(golden_path("hf/llama3/legacy_tp2pp2ep1"));
  EXPECT_GT(legacy.payloads_checked, 50u);
  EXPECT_THAT(legacy.proven, Contains(Field(&Phrase::english, HasSubstr("the CRC-32 of"))));
}

TEST(Verify, AgainstAManifestFindsOneFlippedByte) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  planted.put("../sums.json", write_manifest(hash_checkpoint(planted.path(), {}).value()));
  VerifyOptions options;
  options.against = planted.place() / "sums.json";
  EXPECT_FALSE(verify(planted.path(), options).has_errors());
  planted.flip("model.safetensors", planted.get("model.safetensors").size() - 1);
  EXPECT_FALSE(verify(planted.path()).has_errors()) << "nothing else can know";
  const VerifyReport report = verify(planted.path(), options);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, Code::kDigestMismatch);
  EXPECT_THAT(report.findings[0].message, HasSubstr("its elements differ"));
}

TEST(Verify, AgainstAnotherFormOfTheModel) {
  VerifyOptions options;
  options.against = golden_path("hf/llama3/hf");
  const VerifyReport same = verify(golden_path("hf/llama3/legacy_tp2pp2ep1"), options);
  EXPECT_FALSE(same.has_errors());
  EXPECT_THAT(same.proven, Contains(Field(&Phrase::english, HasSubstr("21 digests are those of"))));
  options.against = golden_path("hf/llama3_4l/hf");
  const VerifyReport other = verify(golden_path("hf/llama3/legacy_tp2pp2ep1"), options);
  EXPECT_THAT(codes_of(other), Contains(Code::kDigestMismatch));
}

// The ranks of a legacy checkpoint that should hold the same norms.
TEST(Verify, FindsRanksThatDriftedApart) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  const auto norm = show_tensor(planted.path(), "model.norm.weight", {}).value();
  planted.flip("model.safetensors", norm.chunks[0].range.offset + 6);
  ConvertRequest request;
  request.input = planted.path();
  request.output = planted.place() / "other";
  request.format = "legacy";
  request.parallel.tensor = 2;
  request.parallel.expert_tensor = 2;
  ASSERT_TRUE(convert_now(request));
  request.input = golden_path("hf/llama3/hf");
  request.output = planted.place() / "mixed";
  ASSERT_TRUE(convert_now(request));
  const std::string rank = "/iter_0000000/mp_rank_01/model_optim_rng.pt";
  planted.put("../mixed" + rank, planted.get("../other" + rank));
  const VerifyReport report = verify(planted.place() / "mixed");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, Code::kReplicasDiffer);
  EXPECT_THAT(report.findings[0].message, HasSubstr("final_layernorm"));
  // To compare one of the two with anything would be a guess.
  const std::string mixed = planted.place() / "mixed";
  const auto diff = diff_checkpoints(golden_path("hf/llama3/hf"), mixed, {}, std::nullopt);
  ASSERT_FALSE(diff);
  EXPECT_EQ(diff.error().code, Code::kReplicasDiffer);
  const auto digests = hash_checkpoint(mixed, {});
  ASSERT_FALSE(digests);
  EXPECT_EQ(digests.error().code, Code::kReplicasDiffer);
  const auto shown = show_tensor(mixed, "decoder.final_layernorm.weight", {});
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().code, Code::kReplicasDiffer);
}

// What is listed twice and stored once repeats nothing.
TEST(Verify, CountsNoReplicaThatIsTheItemItself) {
  const Planted planted;
  Planted::copy("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full", planted);
  const auto replicas_of = [&] {
    std::vector<std::string> told;
    const VerifyReport report = verify(planted.path());
    for (const Phrase& phrase : report.proven) {
      if (phrase.english.contains("replicas")) told.push_back(phrase.english);
    }
    return told;
  };
  const std::vector<std::string> before = replicas_of();
  planted.edit_metadata(
      [](Catalog& catalog) {
        edit_chunks(catalog, "decoder.final_layernorm.weight",
                    [](std::vector<Chunk>& chunks) { chunks.push_back(chunks.front()); });
      },
      "iter_0000010/");
  EXPECT_FALSE(verify(planted.path()).has_errors());
  EXPECT_EQ(replicas_of(), before);
}

// The same, where each rank's copy has a name of its own.
TEST(Verify, FindsNamedReplicasThatDriftedApart) {
  EXPECT_FALSE(verify(golden_path("replica/sound")).has_errors());
  const VerifyReport report = verify(golden_path("replica/diverged"));
  ASSERT_EQ(report.findings.size(), 2u);
  for (const VerifyFinding& finding : report.findings) {
    EXPECT_EQ(finding.code, Code::kReplicasDiffer);
    EXPECT_THAT(finding.message, HasSubstr("its replicas"));
  }
  EXPECT_THAT(report.findings[0].message, HasSubstr("linear_qkv.layer_norm_weight: "));
  EXPECT_THAT(report.findings[1].message, HasSubstr("tensor decoder.final_layernorm.weight: "));
}

const std::string kRunDir = "mcore/dense_te/v0.16.1/";
const std::string kFullRun = kRunDir + "tp2pp2-torch_dist-full";

void unpack(const std::string& golden, const std::string& folder,
            const std::vector<std::string>& without_squares = {}) {
  const TensorMap truth = read_all_tensors(golden_path(kFullRun)).value();
  PackedLegacy packed = read_packed_legacy(kRunDir + golden + ".zst");
  // Another name of the same length, which keeps the pickle whole.
  for (const std::string& file : without_squares) {
    std::string& pickle = packed.at(file + ".pkl");
    pickle.replace(pickle.find("exp_avg_sq"), 10, "exp_avg_sx");
  }
  unpack_legacy(packed, truth, folder);
}

// The same guards as of a conversion, each defect a finding.
TEST(Verify, ProvesOptimizerStatesOfRankFiles) {
  for (const char* golden : {"tp2pp1dp2-torch-bucket", "tp2pp2vpp2-torch-fp16opt"}) {
    const Planted planted;
    unpack(golden, planted.path());
    const VerifyReport report = verify(planted.path());
    for (const VerifyFinding& finding : report.findings) ADD_FAILURE() << finding.message;
    EXPECT_THAT(report.proven, Contains(Field(&Phrase::english, HasSubstr("every master weight"))))
        << golden;
  }
}

TEST(Verify, FindsBuffersOfTheOptimizerThatWereSwapped) {
  const Planted planted;
  unpack("tp2pp1dp2-torch-bucket", planted.path());
  planted.swap("iter_0000010/mp_rank_00/distrib_optim.pt",
               "iter_0000010/mp_rank_01/distrib_optim.pt");
  const VerifyReport report = verify(planted.path());
  EXPECT_TRUE(report.has_errors());
  EXPECT_GT(std::ranges::count(codes_of(report), Code::kOptimizerMismatch), 5);
}

// What the others say of their groups is then held against nothing.
TEST(Verify, FindsAFirstRankWithoutAnOptimizer) {
  PackedLegacy packed = read_packed_legacy(kRunDir + "tp2pp2vpp2-torch-fp16opt.zst");
  std::string& first = packed.at("iter_0000010/mp_rank_00_000/model_optim_rng.pkl");
  pickle::Document document = pickle::decode(as_bytes(first)).value();
  ASSERT_TRUE(document.erase(document.root(), "optimizer"));
  first = pickle::encode(document, pickle::Protocol::kTwo).value();
  const Planted planted;
  unpack_legacy(packed, read_all_tensors(golden_path(kFullRun)).value(), planted.path());
  EXPECT_THAT(codes_of(verify(planted.path())), Contains(Code::kOptimizerUnsupported));
}

// The second moments of one tensor rank are lost, or those of all.
TEST(Verify, FindsStatesThatRankFilesLack) {
  const std::string first = "iter_0000010/mp_rank_00/distrib_optim";
  const std::string second = "iter_0000010/mp_rank_01/distrib_optim";
  using Case = std::pair<std::vector<std::string>, Code>;
  for (const auto& [files, code] :
       {Case{{second}, Code::kHole}, Case{{first, second}, Code::kOptimizerUnsupported}}) {
    const Planted planted;
    unpack("tp2pp1dp2-torch-bucket", planted.path(), files);
    EXPECT_THAT(codes_of(verify(planted.path())), Contains(code)) << files.size();
    const auto converted = convert_now([&] {
      ConvertRequest request;
      request.input = planted.path();
      request.output = planted.place() / "out";
      request.format = "torch_dist";
      return request;
    }());
    EXPECT_FALSE(converted) << "what verify finds, a conversion refuses";
  }
}

// What can't be read is not what is not there.
TEST(Verify, ComparesNoStatesThatCannotBeReadAndSaysSo) {
  const Planted sound;
  unpack("tp2pp1dp2-torch-bucket", sound.path());
  const Planted planted;
  unpack("tp2pp1dp2-torch-bucket", planted.path(), {"iter_0000010/mp_rank_01/distrib_optim"});
  for (const auto& [left, right] :
       {std::pair{planted.path(), sound.path()}, std::pair{golden_path(kFullRun), planted.path()},
        std::pair{planted.path(), planted.path()}}) {
    const DiffReport report = diff_checkpoints(left, right, {}, std::nullopt).value();
    EXPECT_EQ(report.verdict(), "NOT ALL COMPARED");
    EXPECT_THAT(report.notes, Contains(HasSubstr(planted.path() + "/iter_0000010: its optimizer")));
    VerifyOptions options;
    options.against = right;
    EXPECT_THAT(codes_of(verify(left, options)), Contains(Code::kDigestMismatch));
  }
}

// A moment of a norm that one tensor rank has otherwise.
TEST(Verify, ComparesNoStatesOfWhichReplicasDiffer) {
  const Planted planted;
  unpack("tp2pp2vpp2-torch-fp16opt", planted.path());
  const std::string file = "iter_0000010/mp_rank_01_001/model_optim_rng.pt";
  const std::string name = "optimizer.state.exp_avg.decoder.final_layernorm.weight";
  const auto shown = show_tensor(planted.path(), name, {});
  ASSERT_TRUE(shown) << shown.error().text();
  for (std::size_t i = 0; i < shown->chunks.size(); ++i) {
    if (!file.ends_with(shown->files.at(i))) continue;
    alter_sealed(planted.path() + "/" + file, shown->chunks.at(i).range, 3, '\x33');
  }
  const auto diff = diff_checkpoints(golden_path(kFullRun), planted.path(), {}, std::nullopt);
  ASSERT_FALSE(diff);
  EXPECT_EQ(diff.error().code, Code::kReplicasDiffer);
  EXPECT_THAT(diff.error().message, HasSubstr(name));
}

constexpr const char* kBucketRun = "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket";

// Changes a state's first number in the flat buffer that its last chunk lies in; gives how many
// chunks the state has.
std::size_t alter_in_buffer(const Planted& planted, const std::string& name) {
  const auto shown = show_tensor(planted.path(), name, {});
  if (!shown || shown->chunks.empty()) return 0;
  const std::size_t last = shown->chunks.size() - 1;
  const std::uint64_t place = shown->chunks.at(last).range.offset;
  Checkpoint checkpoint = open_checkpoint(planted.path()).value();
  EXPECT_TRUE(locate_items(checkpoint.catalog, *checkpoint.files));
  std::size_t altered = 0;
  for (const StoredTensor& buffer : checkpoint.catalog.tensors) {
    for (std::size_t i = 0; i < buffer.chunks.size(); ++i) {
      const std::string& file = checkpoint.catalog.files[buffer.chunks.file(i)];
      const ByteRange record = buffer.chunks.range(i);
      const bool is_inside = record.offset <= place && place < record.offset + record.length;
      if (!is_inside || file != shown->files.at(last)) continue;
      alter_sealed(checkpoint.location.path + "/" + file, record, place - record.offset + 3,
                   '\x33');
      ++altered;
    }
  }
  EXPECT_EQ(altered, 1u);
  return shown->chunks.size();
}

// The same in flat buffers, which belong to nobody before they are shared out.
TEST(Verify, ComparesNoBuffersOfWhichReplicasDiffer) {
  Planted planted;
  Planted::copy(kBucketRun, planted);
  const std::string name = "optimizer.state.exp_avg_sq.decoder.final_layernorm.weight";
  ASSERT_TRUE(hash_checkpoint(planted.path(), {}));
  ASSERT_GT(alter_in_buffer(planted, name), 1u);
  const auto hash = hash_checkpoint(planted.path(), {});
  ASSERT_FALSE(hash);
  EXPECT_EQ(hash.error().code, Code::kReplicasDiffer) << hash.error().text();
  EXPECT_THAT(hash.error().message, HasSubstr(name));
  const auto diff = diff_checkpoints(golden_path(kBucketRun), planted.path(), {}, std::nullopt);
  ASSERT_FALSE(diff);
  EXPECT_EQ(diff.error().code, Code::kReplicasDiffer) << diff.error().text();
}

// Which of them is whose was derived, and their values are all that proves it: no warning.
TEST(Verify, MasterWeightsInBuffersThatAreNotTheirWeightsAreAnError) {
  Planted planted;
  Planted::copy(kBucketRun, planted);
  const std::string weight = "embedding.word_embeddings.weight";
  const std::size_t chunks =
      alter_in_buffer(planted, "optimizer.state." + std::string(kStateKinds[0]) + "." + weight);
  ASSERT_GT(chunks, 0u);
  const VerifyReport report = verify(planted.path());
  const auto found =
      std::ranges::find(report.findings, Code::kOptimizerMismatch, &VerifyFinding::code);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->severity, Severity::kError);
  EXPECT_THAT(found->message, HasSubstr(weight));
}

TEST(Verify, FindsEachBufferOfTheOptimizerThatWasCut) {
  const Planted planted;
  unpack("tp2pp1dp2-torch-bucket", planted.path());
  for (const std::string rank : {"mp_rank_00", "mp_rank_01"}) {
    planted.cut("iter_0000010/" + rank + "/distrib_optim.pt", 1);
  }
  const VerifyReport report = verify(planted.path());
  for (const std::string rank : {"mp_rank_00", "mp_rank_01"}) {
    EXPECT_TRUE(std::ranges::any_of(report.findings, [&](const VerifyFinding& finding) {
      return finding.code == Code::kZipCorrupt &&
             finding.message.find(rank + "/model_optim_rng.pt: ") != std::string::npos;
    })) << rank;
  }
}

TEST(Verify, FindsEachFileThatIsMissing) {
  const Planted planted;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 2, 1, 1, 2}, planted.path());
  planted.remove("iter_0000000/__1_0.distcp");
  planted.remove("iter_0000000/__3_0.distcp");
  const VerifyReport report = verify(planted.path());
  EXPECT_THAT(codes_of(report), ::testing::ElementsAre(Code::kNotFound, Code::kNotFound));
}

std::string sha256(const std::string& bytes) {
  Sha256 hash;
  hash.update(as_bytes(bytes));
  return hash.finish();
}

// As Megatron writes it with --verify-integrity. A conversion stops at what verify finds.
TEST(Verify, LooksAtMegatronsOwnDigests) {
  const Planted planted;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 1, 1, 1, 2}, planted.path());
  const std::string folder = "iter_0000000/";
  const auto put_digests = [&](const std::string& first, const std::string& second) {
    nlohmann::json digests{{"algorithm", "sha256"}};
    digests["files"] = {{"__0_0.distcp", first}, {"__1_0.distcp", second}};
    planted.put(folder + "integrity.json", digests.dump());
  };
  const auto refusal = [&] {
    ConvertRequest request;
    request.input = planted.path();
    request.output = planted.place() / "out";
    request.format = "torch_dist";
    const auto converted = convert_now(request);
    std::filesystem::remove_all(request.output);
    return converted ? std::string() : converted.error().message;
  };
  const std::string first = sha256(planted.get(folder + "__0_0.distcp"));
  const std::string second = sha256(planted.get(folder + "__1_0.distcp"));
  put_digests(first, second);
  const VerifyReport sound = verify(planted.path());
  EXPECT_FALSE(sound.has_errors());
  EXPECT_THAT(
      sound.proven,
      Contains(Field(&Phrase::english, HasSubstr("2 files have the SHA-256 that integrity.json"))));
  EXPECT_EQ(refusal(), "");

  put_digests(second, first);
  const VerifyReport swapped = verify(planted.path());
  EXPECT_EQ(std::ranges::count(codes_of(swapped), Code::kDigestMismatch), 2);
  EXPECT_THAT(swapped.findings[0].message, HasSubstr("it is __1_0.distcp, under another name"));
  EXPECT_THAT(refusal(), HasSubstr("__0_0.distcp: found SHA-256 " + first));

  // Megatron compares texts, so that a letter that became a capital is a digest that was altered.
  std::string shouted = first;
  std::ranges::transform(shouted, shouted.begin(),
                         [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  put_digests(shouted, second);
  EXPECT_EQ(std::ranges::count(codes_of(verify(planted.path())), Code::kDigestMismatch), 1);

  planted.put(folder + "integrity.json", R"({"algorithm": "crc", "files": {}})");
  EXPECT_THAT(codes_of(verify(planted.path())), Contains(Code::kJsonCorrupt));
  planted.put(folder + "integrity.json",
              R"({"algorithm": "sha256", "files": {"../x": "00", "gone": "00"}})");
  EXPECT_THAT(codes_of(verify(planted.path())),
              ::testing::IsSupersetOf({Code::kPathEscapes, Code::kNotFound}));
}

// Files of two steps: nothing stops a conversion, but something is wrong.
TEST(Verify, WarnsOfMasterWeightsThatAreNotTheWeights) {
  const Planted planted;
  Planted::copy("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full", planted);
  const auto state =
      show_tensor(planted.path(), "optimizer.state.param.decoder.final_layernorm.weight", {});
  ASSERT_TRUE(state) << state.error().text();
  planted.flip("iter_0000010/" + state->files.at(0), state->chunks.at(0).range.offset + 3);
  const VerifyReport report = verify(planted.path());
  const auto found =
      std::ranges::find(report.findings, Code::kOptimizerMismatch, &VerifyFinding::code);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->severity, Severity::kWarning);
  EXPECT_THAT(found->message, HasSubstr("decoder.final_layernorm.weight"));
}

TEST(Verify, FindsLostExpertsOfLocalNumbers) {
  EXPECT_FALSE(verify(golden_path("dcp/mlite_sound")).has_errors());
  const VerifyReport report = verify(golden_path("dcp/mlite_lost_experts"));
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].code, Code::kModelIncomplete);
  EXPECT_THAT(report.findings[0].message, HasSubstr("found 2 experts, expected 4"));
}

TEST(Verify, FailsWhereThereIsNothingToProve) {
  const Planted planted;
  const auto missing = verify_checkpoint(planted.path(), {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  std::filesystem::create_directories(planted.path());
  EXPECT_EQ(verify_checkpoint(planted.path(), {}).error().code, Code::kUnknownFormat);
}

}  // namespace
}  // namespace shardwright
