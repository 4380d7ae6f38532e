// SPDX-License-Identifier: Apache-2.0
// Files of ranks of which one was copied over another: all of them sound in themselves.
#include "compare/repeated_files.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "codec/safetensors_header.h"
#include "shardwright/diagnose.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDense = "hf/llama3/hf";
constexpr const char* kExperts = "hf/qwen3_moe/hf";

Result<PreparedConversion> convert_to(const std::string& input, const std::string& output,
                                      std::string_view format, ParallelConfig parallel = {},
                                      std::int64_t shards = 1,
                                      ReplicaCheck check = ReplicaCheck::kAll) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  request.parallel = parallel;
  request.shards = shards;
  request.check_replicas = check;
  return convert_now(request);
}

// What verify finds of files in other files' places: `error` or `warning` and the message.
std::vector<std::string> found_by_verify(const std::string& path) {
  std::vector<std::string> lines;
  const VerifyReport report = verify_checkpoint(path, {}).value();
  for (const VerifyFinding& finding : report.findings) {
    if (finding.code != Code::kRankMisplaced) continue;
    EXPECT_EQ(finding.object, finding.message.substr(0, finding.message.find(": ")));
    lines.push_back((finding.severity == Severity::kError ? "error " : "warning ") +
                    finding.message);
  }
  return lines;
}

std::vector<std::string> found_by_diagnose(const std::string& path) {
  std::vector<std::string> lines;
  const Diagnosis diagnosis = diagnose({.path = path, .check_replicas = true}).value();
  for (const Finding& finding : diagnosis.findings) {
    if (finding.code != code_name(Code::kRankMisplaced)) continue;
    lines.push_back((finding.severity == Severity::kError ? "error " : "warning ") +
                    finding.message.english);
  }
  return lines;
}

// The golden llama of which only some tensors are not all zeros.
void put_zeros_but(const std::vector<std::string>& kept, const TemporaryFolder& place) {
  std::filesystem::copy(golden_path(kDense), place / "hf",
                        std::filesystem::copy_options::recursive);
  const auto model = open_local_directory(place / "hf").value()->open("model.safetensors").value();
  std::string bytes = place.get("hf/model.safetensors");
  const SafetensorsHeader header = read_safetensors_header(*model).value();
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (std::ranges::find(kept, tensor.desc.name) != kept.end()) continue;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(tensor.range.offset),
                tensor.range.length, '\0');
  }
  place.put("hf/model.safetensors", bytes);
}

TEST(RepeatedFiles, OfSharedTensorsAreRefused) {
  const Planted planted;
  ASSERT_TRUE(convert_to(golden_path(kDense), planted.path(), "dcp", {}, 4));
  EXPECT_THAT(found_by_verify(planted.path()), IsEmpty());
  EXPECT_THAT(found_by_diagnose(planted.path()), IsEmpty());
  planted.put("__3_0.distcp", planted.get("__1_0.distcp"));
  const auto said = HasSubstr(
      "error __3_0.distcp: its parts of 23 tensors are those that __1_0.distcp holds, byte by byte "
      "(the first: lm_head.weight), expected parts of its own");
  EXPECT_THAT(found_by_verify(planted.path()), ElementsAre(said));
  EXPECT_THAT(found_by_diagnose(planted.path()), ElementsAre(said));
  const std::string out = planted.place() / "out";
  const auto refused = convert_to(planted.path(), out, "safetensors");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kRankMisplaced);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_TRUE(convert_to(planted.path(), out, "safetensors", {}, 1, ReplicaCheck::kNone));
}

// A byte that differs is enough to be a file of its own, also the last one of a long part.
TEST(RepeatedFiles, ThatDifferAreNone) {
  for (const char* name : {"model.norm.weight", "model.embed_tokens.weight"}) {
    const Planted planted;
    ASSERT_TRUE(convert_to(golden_path(kDense), planted.path(), "dcp", {}, 4));
    planted.put("__3_0.distcp", planted.get("__1_0.distcp"));
    const auto shown = show_tensor(planted.path(), name, {}).value();
    for (std::size_t i = 0; i < shown.chunks.size(); ++i) {
      if (shown.files.at(i) != "__3_0.distcp") continue;
      const ByteRange range = shown.chunks.at(i).range;
      alter_sealed(planted.path() + "/__3_0.distcp", range, range.length - 1, '\x33');
    }
    EXPECT_THAT(found_by_verify(planted.path()), IsEmpty()) << name;
  }
}

// Experts may be copies of one another: that is worth a warning. Moments of Adam never are.
TEST(RepeatedFiles, OfExpertsAreSuspicious) {
  const Planted planted;
  planted.copy("hf/qwen3_moe/legacy_tp1pp1ep2", planted);
  EXPECT_THAT(found_by_verify(planted.path()), IsEmpty());
  const std::string folder = "iter_0000001/mp_rank_00_00";
  planted.put(folder + "1/model_optim_rng.pt", planted.get(folder + "0/model_optim_rng.pt"));
  const auto said = HasSubstr(
      "warning mp_rank_00_001/model_optim_rng.pt: its parts of 6 tensors are those that "
      "mp_rank_00_000/model_optim_rng.pt holds, byte by byte (the first: "
      "decoder.layers.0.mlp.experts.experts.linear_fc1.weight): experts or layers that were "
      "copied");
  EXPECT_THAT(found_by_verify(planted.path()), ElementsAre(said));
  EXPECT_THAT(found_by_diagnose(planted.path()), ElementsAre(said));
  ConvertRequest request;
  request.input = planted.path();
  request.output = planted.place() / "out";
  request.format = "torch_dist";
  const auto conversion = prepare_conversion(request);
  ASSERT_TRUE(conversion) << conversion.error().text();
  const auto report = run_conversion(*conversion, {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_THAT(report->notes,
              ElementsAre(HasSubstr("mp_rank_00_001/model_optim_rng.pt: its parts of 6 tensors")));
}

TEST(RepeatedFiles, OfExpertRanksOfTorchDistAreSuspicious) {
  const Planted planted;
  ASSERT_TRUE(convert_to(golden_path(kExperts), planted.path(), "torch_dist", {.expert = 4}));
  EXPECT_THAT(found_by_verify(planted.path()), IsEmpty());
  planted.put("iter_0000000/__3_0.distcp", planted.get("iter_0000000/__2_0.distcp"));
  EXPECT_THAT(found_by_verify(planted.path()),
              ElementsAre(HasSubstr("warning __3_0.distcp: its parts of 2 tensors")));
}

TEST(RepeatedFiles, OfExpertsWithMomentsAreRefused) {
  for (const std::string state : {"param", "exp_avg"}) {
    const Planted planted;
    std::vector<TensorDesc> tensors = {
        {"decoder.layers.0.mlp.router.weight", DType::kF32, {4, 16}}};
    for (const char* name : {"linear_fc1.weight", "linear_fc2.weight"}) {
      const std::string expert = std::string("decoder.layers.0.mlp.experts.experts.") + name;
      tensors.push_back({expert, DType::kF32, {4, 16, 16}});
      tensors.push_back({"optimizer.state." + state + "." + expert, DType::kF32, {4, 16, 16}});
    }
    put_model(planted.place() / "in", "", tensors);
    ASSERT_TRUE(convert_to(planted.place() / "in", planted.path(), "dcp", {}, 2));
    planted.put("__1_0.distcp", planted.get("__0_0.distcp"));
    const char* said = state == "param" ? "warning __1_0.distcp: its parts of 5 tensors"
                                        : "error __1_0.distcp: its parts of 5 tensors";
    EXPECT_THAT(found_by_verify(planted.path()), ElementsAre(HasSubstr(said)));
  }
}

// So may be layers, where a larger model is made of a small one's.
TEST(RepeatedFiles, OfStagesAreSuspicious) {
  const Planted planted;
  ASSERT_TRUE(
      convert_to(golden_path("hf/llama3_4l/hf"), planted.path(), "torch_dist", {.pipeline = 4}));
  EXPECT_THAT(found_by_verify(planted.path()), IsEmpty());
  planted.put("iter_0000000/__2_0.distcp", planted.get("iter_0000000/__1_0.distcp"));
  EXPECT_THAT(found_by_verify(planted.path()),
              ElementsAre(HasSubstr("warning __2_0.distcp: its parts of")));
}

// Layers that are tensors of their own, in torch_dist and in files that don't say whose they are.
TEST(RepeatedFiles, OfStagesWithNumberedLayersAreSuspicious) {
  const Planted planted;
  ASSERT_TRUE(
      convert_to(golden_path("hf/qwen35_vl/hf"), planted.path(), "torch_dist", {.pipeline = 4}));
  EXPECT_THAT(found_by_verify(planted.path()), IsEmpty());
  planted.put("iter_0000000/__2_0.distcp", planted.get("iter_0000000/__1_0.distcp"));
  EXPECT_THAT(found_by_verify(planted.path()),
              ElementsAre(HasSubstr("warning __2_0.distcp: its parts of")));
}

// Two files with a layer each, of which one is the other's copy but for its last byte.
struct TwoLayers {
  std::vector<std::string> names;  ///< with {} for the layer's number
  bool is_of_vectors = false;
  bool is_hf_model = false;
  bool is_constant = false;
  bool is_other = false;  ///< that byte
  std::int64_t columns = 16;
  std::int64_t other_columns = 16;
};

// What check_files() says of them: `error` or `warning` and the message.
std::vector<std::string> found_in_layers(const TwoLayers& layers) {
  const TemporaryFolder place;
  constexpr std::int64_t kRows = 16;
  const std::size_t length = kRows * static_cast<std::size_t>(layers.columns) * 4;
  std::string bytes;
  for (std::size_t i = 0; i < layers.names.size() * length; ++i) {
    bytes += layers.is_constant ? '\0' : static_cast<char>(i * i / 7);
  }
  place.put("a", bytes);
  if (layers.is_other) bytes.back() = static_cast<char>(bytes.back() + 1);
  place.put("b", bytes);
  Checkpoint checkpoint;
  checkpoint.directory = open_local_directory(place.path().string()).value();
  checkpoint.catalog.files = {"a", "b"};
  checkpoint.location.traits.is_hf_model = layers.is_hf_model;
  checkpoint.files =
      std::make_shared<SourceFiles>(*checkpoint.directory, checkpoint.catalog.files, 4);
  for (const std::uint32_t file : {0U, 1U}) {
    const std::int64_t columns = file == 0 ? layers.columns : layers.other_columns;
    for (std::size_t i = 0; i < layers.names.size(); ++i) {
      const std::string name = fmt::format(fmt::runtime(layers.names[i]), file + 2);
      const Dims shape = layers.is_of_vectors ? Dims{kRows * columns} : Dims{kRows, columns};
      StoredTensor tensor{{name, DType::kF32, shape}, ChunkList(shape.size())};
      tensor.chunks.push_back({Box::whole(tensor.desc.shape), file, {i * length, length}, {}});
      checkpoint.catalog.tensors.push_back(std::move(tensor));
    }
  }
  Defects defects(Defects::Policy::kCollect);
  std::vector<std::string> lines;
  const auto suspected = check_files(checkpoint, checkpoint.catalog, ReplicaCheck::kAll, defects);
  if (!suspected) return {suspected.error().text()};
  for (const std::string& text : *suspected) lines.push_back("warning " + text);
  for (const Error& error : defects.found()) lines.push_back("error " + error.message);
  return lines;
}

// Moments of two layers are never alike, once they are more than what they begin with.
TEST(RepeatedFiles, OfNumberedLayersWithMomentsAreRefused) {
  const std::string fc1 = "decoder.layers.{}.mlp.linear_fc1.weight";
  const std::string fc2 = "decoder.layers.{}.mlp.linear_fc2.weight";
  const std::string moment = "optimizer.state.exp_avg.";
  const auto warning = HasSubstr(
      "warning b: its parts of 2 tensors are those that a holds, byte by byte (the first: "
      "decoder.layers.mlp.linear_fc1.weight)");
  EXPECT_THAT(found_in_layers({.names = {fc1, fc2}}), ElementsAre(warning));
  EXPECT_THAT(found_in_layers({.names = {moment + fc1, moment + fc2}}),
              ElementsAre(HasSubstr("error b: its parts of 2 tensors")));
  EXPECT_THAT(found_in_layers({.names = {fc1, fc2}, .is_other = true}), IsEmpty());
  EXPECT_THAT(found_in_layers({.names = {fc1, fc2}, .is_constant = true}), IsEmpty());
  EXPECT_THAT(found_in_layers({.names = {fc1, fc2}, .columns = 8}), IsEmpty()) << "another shape";
  EXPECT_THAT(found_in_layers({.names = {fc1, fc2}, .is_of_vectors = true}), IsEmpty());
  EXPECT_THAT(found_in_layers({.names = {fc1, fc2}, .is_hf_model = true}), IsEmpty());
  EXPECT_THAT(found_in_layers({.names = {fc1}}), IsEmpty()) << "one may be so by chance";
  EXPECT_THAT(found_in_layers({.names = {"a.{}.weight", "b.{}.weight"}}), IsEmpty());
}

// What is one number all over is alike wherever it is cut, and one matrix may be so by chance.
TEST(RepeatedFiles, OfConstantsAreSound) {
  const std::vector<std::string> two = {"lm_head.weight", "model.embed_tokens.weight"};
  for (std::size_t kept = 0; kept <= two.size(); ++kept) {
    const Planted planted;
    put_zeros_but({two.begin(), two.begin() + static_cast<std::ptrdiff_t>(kept)}, planted.place());
    ASSERT_TRUE(convert_to(planted.place() / "hf", planted.path(), "dcp", {}, 2));
    EXPECT_THAT(found_by_verify(planted.path()), IsEmpty()) << kept;
    planted.put("__1_0.distcp", planted.get("__0_0.distcp"));
    EXPECT_EQ(found_by_verify(planted.path()).size(), kept < 2 ? 0U : 1U) << kept;
  }
}

}  // namespace
}  // namespace shardwright
