// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/endian.h"
#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "compare/master_weights.h"
#include "convert/legacy_golden.h"
#include "dcp/torch_items.h"
#include "io/memory_directory.h"
#include "shardwright/prepared_conversion.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"
#include "testing/tensor_records.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;

ConvertRequest keeping(const std::string& input, const std::string& output,
                       const ParallelConfig& parallel = {}) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.parallel = parallel;
  request.optimizer = OptimizerPolicy::kKeep;
  return request;
}

// What a model's checkpoints all hold: Megatron's own one whose states are named like weights.
TensorMap truth_of(const std::string& model) {
  std::string path = "dense_te/v0.16.1/tp2pp2-torch_dist-full";
  if (model.starts_with("gpt2")) path = "gpt2_te/v0.20.0dev/tp1pp2-torch_dist-full";
  if (model.starts_with("moe")) path = "moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full";
  return read_all_tensors(golden_path("mcore/" + path)).value();
}

// Megatron-Core's own modules name the norm before an MLP otherwise where it has experts.
TensorMap with_local_names(const TensorMap& tensors) {
  constexpr std::string_view kNorm = ".pre_mlp_layernorm.";
  TensorMap named;
  for (const auto& [name, tensor] : tensors) {
    std::string local = name;
    const std::size_t at = name.find(kNorm);
    if (at != std::string::npos) local.replace(at, kNorm.size(), ".mlp.linear_fc1.layer_norm_");
    named.emplace(local, tensor);
  }
  return named;
}

void expect_same_states(TensorMap got, TensorMap expected) {
  trim_vocabulary(got, expected);
  EXPECT_EQ(difference(got, expected), "");
}

struct SavedStates {
  std::string path;
  std::vector<ParallelConfig> targets;
};

class LegacyOptimizer : public testing::TestWithParam<SavedStates> {};

// Weights and states of every parameter, bit by bit, at other layouts.
TEST_P(LegacyOptimizer, BecomesTheTruthAtAnyLayout) {
  const std::string& path = GetParam().path;
  TensorMap truth = truth_of(path);
  const TemporaryFolder place;
  unpack_legacy(read_packed_legacy("mcore/" + path + ".zst"), truth, place / "in");
  if (path.starts_with("moe/")) truth = with_local_names(truth);
  for (const ParallelConfig& target : GetParam().targets) {
    const TemporaryFolder out;
    const auto converted = convert_now(keeping(place / "in", out / "x", target));
    ASSERT_TRUE(converted) << converted.error().text();
    const TensorMap written = read_all_tensors(out / "x").value();
    expect_same_states(written, truth);
    // A Float16Optimizer's run would not find its master weights.
    const auto told = testing::Contains(HasSubstr("had none: load them with"));
    const bool is_distributed = path.ends_with("bucket");
    EXPECT_THAT(converted->notes, testing::Conditional(is_distributed, testing::Not(told), told));
  }
}

// Megatron-LM would look for distrib_optim.pt.
TEST(Optimizer, OfFilesOfRanksIsNotDistributed) {
  const TemporaryFolder out;
  const std::string run = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const auto told = Contains(HasSubstr("go on from these files without --use-distributed-optim"));
  ConvertRequest request = keeping(run, out / "kept");
  request.format = "legacy";
  const auto kept = convert_now(request);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_THAT(kept->notes, told);
  request.output = out / "dropped";
  request.optimizer = OptimizerPolicy::kDrop;
  const auto dropped = convert_now(request);
  ASSERT_TRUE(dropped) << dropped.error().text();
  EXPECT_THAT(dropped->notes, testing::Not(told));
}

INSTANTIATE_TEST_SUITE_P(
    Golden, LegacyOptimizer,
    testing::Values(
        SavedStates{"dense_te/v0.16.1/tp2pp2vpp2-torch-fp16opt",
                    {{1, 1, 1, 1, 1}, {4, 1, 1, 1, 4}, {2, 4, 1, 1, 2}}},
        SavedStates{"dense_te/v0.16.1/tp2pp1dp2-torch-bucket", {{1, 1, 1, 1, 1}, {4, 2, 1, 1, 4}}},
        SavedStates{"gpt2_te/v0.20.0dev/tp2pp2-torch-fp16opt", {{1, 1, 1, 1, 1}, {1, 4, 1, 1, 1}}},
        SavedStates{"moe/v0.20.0dev/tp1pp1ep2dp2-torch-fp16opt",
                    {{1, 1, 1, 1, 1}, {2, 2, 1, 4, 1}}},
        SavedStates{"moe_te_grouped/v0.16.1/tp2pp1ep2etp1-torch-fp16opt",
                    {{1, 1, 1, 1, 1}, {1, 2, 1, 4, 1}}}),
    [](const auto& test) {
      std::string name = test.param.path;
      std::replace_if(
          name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

// As a training run would make them: what the old dtype had rounded off is in the master weights.
TEST(CastWeights, AreTheMasterWeightsInTheNewDtype) {
  const TemporaryFolder place;
  const std::string source = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  ConvertRequest request = keeping(source, place / "wide", {2, 1, 1, 1, 2});
  request.dtype = DType::kF32;
  ASSERT_TRUE(convert_now(request));
  const TensorMap wide = read_all_tensors(place / "wide").value();
  std::size_t compared = 0;
  for (const auto& [name, master] : wide) {
    const auto weight = weight_of_master(name);
    if (!weight) continue;
    EXPECT_EQ(wide.at(std::string(*weight)).bytes, master.bytes) << name;
    ++compared;
  }
  EXPECT_GT(compared, 5u);
  request = keeping(source, place / "half", {2, 1, 1, 1, 2});
  request.dtype = DType::kF16;
  request.format = "legacy";
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted);
  EXPECT_THAT(converted->notes, Contains(HasSubstr("from the optimizer's master weights")));
  // It compares every master weight with its weight.
  const auto back = convert_now(keeping(place / "half", place / "back"));
  EXPECT_TRUE(back) << back.error().text();
}

// What a pickle's value is, tensors with their bytes, whatever it is made of.
class Description {
 public:
  Description(const TorchArchive& archive, const std::string& file)
      : archive_(archive), file_(file) {}

  std::string of(pickle::Value value) const {
    using pickle::Kind;
    if (is_tensor(value)) return of_tensor(value);
    std::string text;
    if (value.is(Kind::kDict)) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        text += of(value.key(i)) + ": " + of(value.value(i)) + ",\n";
      }
      return "{" + text + "}";
    }
    if (value.is(Kind::kList) || value.is(Kind::kTuple)) {
      for (std::size_t i = 0; i < value.size(); ++i) text += of(value[i]) + ", ";
      return "[" + text + "]";
    }
    if (const auto number = value.as_double()) return fmt::format("{}", *number);
    if (value.is_none()) return "None";
    if (const auto flag = value.as_bool()) return *flag ? "True" : "False";
    EXPECT_TRUE(value.is(Kind::kString)) << pickle::kind_name(value.kind());
    return std::string(value.text());
  }

 private:
  std::string of_tensor(pickle::Value value) const {
    const LocatedTensor place = archive_.locate(value).value();
    EXPECT_TRUE(place.strides.empty());
    const std::string bytes = file_.substr(place.range.offset, place.range.length);
    return fmt::format("{} {} {}", torch_name(place.dtype), to_string(place.shape),
                       content_digest(bytes));
  }

  const TorchArchive& archive_;
  const std::string& file_;
};

std::string optimizer_of(const std::string& path) {
  const std::string bytes = read_file(path);
  const auto file = make_memory_file(path, bytes);
  const TorchArchive archive = TorchArchive::open(*file).value();
  return Description(archive, bytes).of(archive.root().find("optimizer"));
}

// Every rank's optimizer as Megatron saved it: structure, order, numbers and tensors.
void expect_own_optimizers(const std::string& got, const std::string& expected) {
  std::size_t ranks = 0;
  const std::string folder = expected + "/iter_0000010/";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string() + "/model_optim_rng.pt";
    const std::string theirs = optimizer_of(folder + file);
    EXPECT_GT(theirs.size(), 1000U);
    EXPECT_EQ(optimizer_of(got + "/iter_0000010/" + file), theirs) << file;
    ++ranks;
  }
  EXPECT_GE(ranks, 2U);
}

struct SavedRun {
  std::string path;
  ParallelConfig config;
};

class LegacyOptimizerFile : public testing::TestWithParam<SavedRun> {};

// Through torch_dist at another layout, and straight.
TEST_P(LegacyOptimizerFile, IsMegatronsOwn) {
  const auto& [path, config] = GetParam();
  const TemporaryFolder place;
  unpack_legacy(read_packed_legacy("mcore/" + path + ".zst"), truth_of(path), place / "in");
  ConvertRequest straight = keeping(place / "in", place / "straight", config);
  straight.format = "legacy";
  const auto copied = convert_now(straight);
  ASSERT_TRUE(copied) << copied.error().text();
  expect_own_optimizers(place / "straight", place / "in");
  const auto resharded = convert_now(keeping(place / "in", place / "other", {1, 2, 1, 1, 1}));
  ASSERT_TRUE(resharded) << resharded.error().text();
  ConvertRequest back = keeping(place / "other", place / "back", config);
  back.format = "legacy";
  const auto returned = convert_now(back);
  ASSERT_TRUE(returned) << returned.error().text();
  expect_own_optimizers(place / "back", place / "in");
}

INSTANTIATE_TEST_SUITE_P(
    Golden, LegacyOptimizerFile,
    testing::Values(SavedRun{"dense_te/v0.16.1/tp2pp2vpp2-torch-fp16opt", {2, 2, 2, 1, 2}},
                    SavedRun{"gpt2_te/v0.20.0dev/tp2pp2-torch-fp16opt", {2, 2, 1, 1, 2}},
                    SavedRun{"moe/v0.20.0dev/tp1pp1ep2dp2-torch-fp16opt", {1, 1, 1, 2, 1}},
                    SavedRun{"moe_te_grouped/v0.16.1/tp2pp1ep2etp1-torch-fp16opt",
                             {2, 1, 1, 2, 1}}),
    [](const auto& test) { return test.param.path.substr(0, test.param.path.find('/')); });

// A distributed optimizer's states become those of Float16Optimizer; groups of torch's Adam without
// a step take the iteration.
TEST(LegacyOptimizerTarget, TakesStatesOfAnyKind) {
  const TemporaryFolder out;
  ConvertRequest request =
      keeping(golden_path("mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket"), out / "x",
              {1, 2, 1, 1, 1});
  request.format = "legacy";
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  const auto back = convert_now(keeping(out / "x", out / "back", {2, 1, 1, 1, 2}));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_TRUE(back->checks_master_weights);
  const TensorMap tensors = read_all_tensors(out / "back").value();
  expect_same_states(tensors, truth_of("dense_te"));
  std::size_t compared = 0;
  for (const auto& [name, master] : tensors) {
    const std::string_view prefix = "optimizer.state.param.";
    if (!name.starts_with(prefix)) continue;
    compared += master.bytes.size() + tensors.at(name.substr(prefix.size())).bytes.size();
  }
  EXPECT_GT(compared, 0U);
  EXPECT_EQ(back->master_weight_bytes, compared);
  const auto file = make_memory_file("common.pt", out.get("back/iter_0000010/common.pt"));
  const TorchArchive archive = TorchArchive::open(*file).value();
  const pickle::Value groups =
      archive.root().find("optimizer").find("optimizer").find("param_groups");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].find("step").as_int(), 10);
}

TEST(LegacyOptimizerTarget, NeedsAStateForEachParameter) {
  const TemporaryFolder out;
  ConvertRequest request =
      keeping(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"), out / "x");
  request.format = "legacy";
  request.exclude = {"optimizer.state.exp_avg.output_layer.weight"};
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("found the optimizer states exp_avg_sq, param, "
                                                 "expected exp_avg, exp_avg_sq, param as of"));
}

// A copy of a golden torch_dist checkpoint that calls a module otherwise.
std::string with_unknown_module(const std::string& golden, const TemporaryFolder& place) {
  const std::filesystem::path copy = place / "in";
  std::filesystem::copy(golden_path("mcore/" + golden), copy,
                        std::filesystem::copy_options::recursive);
  const std::string metadata = copy / "iter_0000010" / ".metadata";
  std::string bytes = read_file(metadata);
  constexpr std::string_view kKnown = "self_attention.linear_proj.";
  constexpr std::string_view kUnknown = "self_attention.linear_warp.";
  std::size_t renamed = 0;
  for (std::size_t at = 0; (at = bytes.find(kKnown, at)) != std::string::npos; ++renamed) {
    bytes.replace(at, kKnown.size(), kUnknown);
  }
  EXPECT_GT(renamed, 0U);
  std::filesystem::permissions(metadata, std::filesystem::perms::owner_all);
  std::ofstream(metadata, std::ios::binary) << bytes;
  return copy;
}

// Parameters of equal shape would get each other's states.
TEST(LegacyOptimizerTarget, NeedsModulesWhoseOrderIsKnown) {
  const TemporaryFolder place;
  ConvertRequest request =
      keeping(with_unknown_module("dense_te/v0.16.1/tp2pp2-torch_dist-full", place), place / "x");
  request.format = "legacy";
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message,
              HasSubstr("decoder.layers.0.self_attention.linear_warp: found a module"));
  request.optimizer = OptimizerPolicy::kDrop;
  EXPECT_TRUE(convert_now(request)) << "weights are found by their names";
}

TEST(FlatBuckets, NeedModulesWhoseOrderIsKnown) {
  const TemporaryFolder place;
  const auto refused = convert_now(keeping(
      with_unknown_module("dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket", place), place / "x"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("self_attention.linear_warp: found a module"));
}

// An FP32Optimizer trains the weights: they must be the master weights, not the rounded ones.
TEST(LegacyOptimizerTarget, TakesMasterWeightsWhereWeightsAreWide) {
  const TemporaryFolder place;
  ConvertRequest request =
      keeping(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"), place / "x");
  request.format = "legacy";
  request.dtype = DType::kF32;
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  const auto back = convert_now(keeping(place / "x", place / "back", {2, 1, 1, 1, 2}));
  ASSERT_TRUE(back) << back.error().text();
  TensorMap truth = truth_of("dense_te");
  for (auto& [name, tensor] : truth) {
    const auto master = truth.find("optimizer.state.param." + name);
    if (master != truth.end()) tensor = master->second;
  }
  expect_same_states(read_all_tensors(place / "back").value(), truth);
  EXPECT_THAT(back->notes, testing::Contains(HasSubstr("nothing proves whose their states are")));
}

// Its groups go along, with the step that torch keeps in each parameter's state.
TEST(LegacyOptimizerState, HasItsGroupsInTheCommonState) {
  const std::string path = "moe_te_grouped/v0.16.1/tp2pp1ep2etp1-torch-fp16opt";
  const TemporaryFolder place;
  unpack_legacy(read_packed_legacy("mcore/" + path + ".zst"), truth_of(path), place / "in");
  const auto converted = convert_now(keeping(place / "in", place / "x", {1, 1, 1, 2, 1}));
  ASSERT_TRUE(converted) << converted.error().text();
  const auto file = make_memory_file("common.pt", place.get("x/iter_0000010/common.pt"));
  const TorchArchive archive = TorchArchive::open(*file).value();
  const pickle::Value optimizer = archive.root().find("optimizer");
  std::vector<std::string> groups;
  for (const std::int64_t chained : {0, 1}) {
    const pickle::Value part = optimizer.find(chained);
    EXPECT_EQ(part.find("param_state_sharding_type").text(), "fully_reshardable");
    const pickle::Value list = part.find("optimizer").find("param_groups");
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_FALSE(list[i].find("params"));
      EXPECT_EQ(list[i].find("step").as_int(), 1);
      EXPECT_EQ(list[i].find("eps").as_double(), 1e-8);
      const bool is_expert = *list[i].find("is_expert_parallel").as_bool();
      groups.push_back(
          fmt::format("{} {} {}", chained, is_expert, *list[i].find("wd_mult").as_double()));
    }
  }
  EXPECT_THAT(groups, testing::ElementsAre("0 false 1", "0 false 0", "1 true 1"));
}

// One of the packed goldens, with something wrong about it.
class DamagedLegacy : public testing::Test {
 protected:
  DamagedLegacy()
      : packed_(read_packed_legacy("mcore/dense_te/v0.16.1/tp2pp2vpp2-torch-fp16opt.zst")),
        truth_(truth_of("dense_te")) {}

  static constexpr const char* kStorages = "iter_0000010/mp_rank_01_000/model_optim_rng.storages";

  // Puts one storage's line in another's place.
  void exchange(const std::string& first, const std::string& second) {
    std::string& lines = packed_.at(kStorages);
    const std::size_t a = lines.rfind("\n" + first + "\n");
    const std::size_t b = lines.rfind("\n" + second + "\n");
    ASSERT_TRUE(a != std::string::npos && b != std::string::npos && a < b);
    lines.replace(b + 1, second.size(), first);
    lines.replace(a + 1, first.size(), second);
  }

  void change(const std::string& file, const std::function<void(pickle::Document&)>& how) {
    pickle::Document document = pickle::decode(as_bytes(packed_.at(file))).value();
    how(document);
    packed_.at(file) = pickle::encode(document, pickle::Protocol::kTwo).value();
  }

  static pickle::Value inner_optimizer(const pickle::Document& document) {
    return document.root().find("optimizer").find("optimizer");
  }

  Error refusal(const ConvertRequest& request) {
    const auto converted = convert_now(request);
    EXPECT_FALSE(converted);
    EXPECT_FALSE(std::filesystem::exists(request.output));
    return converted ? Error{} : converted.error();
  }

  ConvertRequest unpacked() {
    unpack_legacy(packed_, truth_, place_ / "in");
    return keeping(place_ / "in", place_ / "out");
  }

  PackedLegacy packed_;
  TensorMap truth_;
  TemporaryFolder place_;
};

TEST_F(DamagedLegacy, MastersInAnotherOrderAreNoticed) {
  const std::string master =
      "optimizer.state.param.decoder.layers.self_attention.linear_qkv.weight";
  exchange(master + "[0:1,64:128,0:64]", master + "[2:3,64:128,0:64]");
  const ConvertRequest request = unpacked();
  EXPECT_TRUE(prepare_conversion(request)) << "a plan reads no weights";
  const Error error = refusal(request);
  EXPECT_EQ(error.code, Code::kOptimizerMismatch);
  EXPECT_THAT(error.message, HasSubstr("self_attention.linear_qkv.weight: found a master weight "
                                       "that, rounded to bfloat16, is not the weight at (64, 0)"));
}

TEST_F(DamagedLegacy, RandomStatesOfRanksAreLeftBehindAndThatIsSaid) {
  const auto says_it = testing::Contains(HasSubstr("RNG states are left out"));
  const auto converted = convert_now(unpacked());
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes, says_it);
  std::filesystem::remove_all(place_ / "in");
  std::filesystem::remove_all(place_ / "out");
  for (auto& [path, bytes] : packed_) {
    if (!path.ends_with(".pkl")) continue;
    pickle::Document document = pickle::decode(as_bytes(bytes)).value();
    EXPECT_TRUE(document.erase(document.root(), "rng_state")) << path;
    bytes = pickle::encode(document, pickle::Protocol::kTwo).value();
  }
  const auto without = convert_now(unpacked());
  ASSERT_TRUE(without) << without.error().text();
  EXPECT_THAT(without->notes, testing::Not(says_it));
}

// fp16 runs have one; no golden run does.
TEST_F(DamagedLegacy, LossScalesAreLeftBehindAndThatIsSaid) {
  for (auto& [path, bytes] : packed_) {
    if (!path.ends_with(".pkl")) continue;
    pickle::Document document = pickle::decode(as_bytes(bytes)).value();
    const pickle::Value optimizer = document.root().find("optimizer");
    const pickle::Value scaler = document.dict();
    document.set(scaler, "scale", optimizer.find("fp32_from_fp16_params")[0][0]);
    document.set(optimizer, "grad_scaler", scaler);
    bytes = pickle::encode(document, pickle::Protocol::kTwo).value();
  }
  const auto converted = convert_now(unpacked());
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes, testing::Contains(HasSubstr("the loss scale is not carried")));
  const auto file = make_memory_file("common.pt", place_.get("out/iter_0000010/common.pt"));
  const TorchArchive archive = TorchArchive::open(*file).value();
  EXPECT_FALSE(archive.root().find("optimizer").find("grad_scaler"));
}

TEST_F(DamagedLegacy, OneWrongBitIsNoticed) {
  std::string& bytes =
      truth_.at("optimizer.state.param.decoder.layers.mlp.linear_fc2.weight").bytes;
  // The sign of element (1, 2, 5), on the second stage: 64 by 96.
  bytes[4 * (64 * 96 + 2 * 96 + 5) + 3] ^= '\x80';
  const Error error = refusal(unpacked());
  EXPECT_EQ(error.code, Code::kOptimizerMismatch);
  EXPECT_THAT(error.message, HasSubstr("decoder.layers.1.mlp.linear_fc2.weight: "));
  EXPECT_THAT(error.message, HasSubstr("at (2, 5)"));
}

TEST_F(DamagedLegacy, StatesWithoutTheirWeightsAreNotTaken) {
  ConvertRequest request = unpacked();
  request.exclude = {"decoder.final_layernorm.weight"};
  const Error error = refusal(request);
  EXPECT_EQ(error.code, Code::kUsage);
  EXPECT_THAT(error.message,
              HasSubstr("tensor decoder.final_layernorm.weight: this weight is left out"));
}

TEST_F(DamagedLegacy, OtherOptimizersAreRefusedByName) {
  const ConvertRequest request = unpacked();
  place_.put("in/iter_0000010/mp_rank_00_000/optim.pt", "x");
  const Error error = refusal(request);
  EXPECT_EQ(error.code, Code::kOptimizerUnsupported);
  EXPECT_THAT(error.message, HasSubstr("mp_rank_00_000/model_optim_rng.pt: "));
  EXPECT_THAT(error.message, HasSubstr("optim.pt: found a data-parallel rank's part"));
}

TEST_F(DamagedLegacy, StepsThatDifferAreRefused) {
  const std::string one = "hex:0000803f";
  const std::string two = "hex:00000040";
  std::string& lines = packed_.at(kStorages);
  lines.replace(lines.find(one), one.size(), two);
  Error error = refusal(unpacked());
  EXPECT_EQ(error.code, Code::kOptimizerUnsupported);
  EXPECT_THAT(error.message, HasSubstr("found step 1, expected 2 as of the other parameters"));
  // All of one rank.
  for (std::size_t at = 0; (at = lines.find(one)) != std::string::npos;) {
    lines.replace(at, one.size(), two);
  }
  error = refusal(unpacked());
  EXPECT_EQ(error.code, Code::kOptimizerUnsupported);
  EXPECT_THAT(error.message, HasSubstr("mp_rank_01_000/model_optim_rng.pt: optimizer: found step "
                                       "2, expected 1 as in other ranks' files"));
}

TEST_F(DamagedLegacy, SettingsThatDifferAreRefused) {
  const std::string file = "iter_0000010/mp_rank_01_000/model_optim_rng.pkl";
  const std::string whole = packed_.at(file);
  change(file, [](pickle::Document& document) {
    const pickle::Value groups = inner_optimizer(document).find("param_groups");
    document.set(groups[0], "lr", document.real(0.5));
  });
  Error error = refusal(unpacked());
  EXPECT_EQ(error.code, Code::kOptimizerMismatch);
  EXPECT_THAT(error.message,
              HasSubstr("mp_rank_01_000/model_optim_rng.pt: found lr 0.5, expected "));
  EXPECT_THAT(error.message, HasSubstr(" as in mp_rank_00_000/model_optim_rng.pt"));
  packed_.at(file) = whole;
  change(file, [](pickle::Document& document) {
    document.set(document.root().find("opt_param_scheduler"), "num_steps", document.integer(77));
  });
  error = refusal(unpacked());
  EXPECT_EQ(error.code, Code::kOptimizerMismatch);
  EXPECT_THAT(error.message, HasSubstr("found num_steps 77, expected "));
}

TEST_F(DamagedLegacy, ArgumentsThatDifferAreTold) {
  change("iter_0000010/mp_rank_01_001/model_optim_rng.pkl", [](pickle::Document& document) {
    document.set_attribute(document.root().find("args"), "rotary_base", document.integer(77));
  });
  const auto converted = convert_now(unpacked());
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes,
              testing::Contains(HasSubstr("mp_rank_01_001/model_optim_rng.pt: rotary_base is "
                                          "another than in mp_rank_00_000/model_optim_rng.pt")));
}

// A pipeline stage has groups, and of a chain optimizers, that the first has no parameters for.
TEST_F(DamagedLegacy, GroupsOfLaterRanksAreKept) {
  change("iter_0000010/mp_rank_01_000/model_optim_rng.pkl", [](pickle::Document& document) {
    const pickle::Value groups = inner_optimizer(document).find("param_groups");
    document.set(groups[1], "lr_mult", document.real(2.0));
  });
  change("iter_0000010/mp_rank_01_001/model_optim_rng.pkl", [](pickle::Document& document) {
    const pickle::Value group = document.dict();
    document.set(group, "params", document.list());
    document.set(group, "is_expert_parallel", document.boolean(true));
    document.set(group, "betas", document.list());
    const std::array<pickle::Value, 1> groups = {group};
    const pickle::Value inner = document.dict();
    document.set(inner, "param_groups", document.list(groups));
    document.set(inner, "state", document.dict());
    const pickle::Value experts = document.dict();
    document.set(experts, "optimizer", inner);
    const std::array<pickle::Value, 1> masters = {document.list()};
    document.set(experts, "fp32_from_fp16_params", document.list(masters));
    const std::array<pickle::Value, 2> chain = {document.root().find("optimizer"), experts};
    document.set(document.root(), "optimizer", document.list(chain));
  });
  const auto converted = convert_now(unpacked());
  ASSERT_TRUE(converted) << converted.error().text();
  const auto file = make_memory_file("common.pt", place_.get("out/iter_0000010/common.pt"));
  const TorchArchive archive = TorchArchive::open(*file).value();
  // A dense model's are one optimizer's.
  const pickle::Value list =
      archive.root().find("optimizer").find("optimizer").find("param_groups");
  std::vector<std::string> groups;
  for (std::size_t i = 0; i < list.size(); ++i) {
    groups.push_back(fmt::format("{} {} {}", *list[i].find("is_expert_parallel").as_bool(),
                                 list[i].find("lr_mult").as_double().value_or(0.0),
                                 list[i].find("step").as_int().value_or(-1)));
  }
  EXPECT_THAT(groups, testing::ElementsAre("false 1 1", "false 1 1", "false 2 1", "true 0 1"));
}

TEST_F(DamagedLegacy, MayLeaveItsOptimizerBehind) {
  ConvertRequest request = unpacked();
  request.optimizer = OptimizerPolicy::kDrop;
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes, testing::Contains("optimizer state is dropped"));
  EXPECT_FALSE(converted->checks_master_weights);
  const TensorMap written = read_all_tensors(place_ / "out").value();
  for (const auto& [name, tensor] : written) {
    EXPECT_FALSE(name.starts_with("optimizer.")) << name;
  }
}

class DamagedBuffers : public testing::Test {
 protected:
  DamagedBuffers() {
    unpack_legacy(read_packed_legacy("mcore/dense_te/v0.16.1/tp2pp1dp2-torch-bucket.zst"),
                  truth_of("dense_te"), place_ / "in");
  }
  TemporaryFolder place_;
};

TEST_F(DamagedBuffers, ThatAreMissingAreNamed) {
  std::filesystem::remove(place_ / "in/iter_0000010/mp_rank_01/distrib_optim.pt");
  const auto refused = prepare_conversion(keeping(place_ / "in", place_ / "out"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("mp_rank_01/model_optim_rng.pt: "));
  EXPECT_THAT(refused.error().message, HasSubstr("expected distrib_optim.pt"));
}

// The error is told when the list of files has grown.
TEST_F(DamagedBuffers, ThatWereCutAreNamed) {
  const std::string path = "in/iter_0000010/mp_rank_01/distrib_optim.pt";
  const std::string bytes = place_.get(path);
  place_.put(path, bytes.substr(0, bytes.size() - 1));
  const auto refused = prepare_conversion(keeping(place_ / "in", place_ / "out"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kZipCorrupt);
  EXPECT_THAT(refused.error().message, testing::StartsWith("mp_rank_01/model_optim_rng.pt: "));
  EXPECT_THAT(refused.error().message, HasSubstr("mp_rank_01/distrib_optim.pt"));
}

// Both ranks' buffers are as long; only their values tell.
TEST_F(DamagedBuffers, OfAnotherRankAreNoticed) {
  const std::string ranks = place_ / "in/iter_0000010/";
  std::filesystem::copy_file(ranks + "mp_rank_00/distrib_optim.pt",
                             ranks + "mp_rank_01/distrib_optim.pt",
                             std::filesystem::copy_options::overwrite_existing);
  ConvertRequest request = keeping(place_ / "in", place_ / "out");
  request.check_replicas = ReplicaCheck::kNone;
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerMismatch);
  EXPECT_FALSE(std::filesystem::exists(place_ / "out"));
}

// Flat states of torch_dist directories. That they become the truth is tested with other layouts.
class FlatStates : public testing::Test {
 protected:
  static constexpr const char* kBuckets = "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket";

  void copy(const std::string& golden) {
    std::filesystem::copy(golden_path(golden), place_ / "in",
                          std::filesystem::copy_options::recursive);
  }
  Error refusal(const ConvertRequest& request) {
    const auto converted = convert_now(request);
    EXPECT_FALSE(converted);
    EXPECT_FALSE(std::filesystem::exists(request.output));
    return converted ? Error{} : converted.error();
  }
  TemporaryFolder place_;
};

// Stored in an order that no module has, a sound bucket's values are still of other parameters.
TEST_F(FlatStates, ThatAreNotTheWeightsAreNoticed) {
  copy(kBuckets);
  Checkpoint opened = open_checkpoint(place_ / "in").value();
  ASSERT_TRUE(locate_items(opened.catalog, *opened.files));
  const auto bucket = std::ranges::find_if(opened.catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.starts_with("optimizer.distributed.dp_group_idx_1.") &&
           tensor.desc.name.ends_with(".param");
  });
  ASSERT_NE(bucket, opened.catalog.tensors.end());
  // Element 16384 of the bucket is the first of the final norm: the output layer has 256 by 64.
  std::size_t chunk = 0;
  while (bucket->chunks.box(chunk).origin[0] != 16384) ++chunk;
  alter_sealed(opened.location.path + "/" + opened.catalog.files[bucket->chunks.file(chunk)],
               bucket->chunks.range(chunk), 3, '\x7f');
  ConvertRequest request = keeping(place_ / "in", place_ / "out");
  Error error = refusal(request);
  EXPECT_EQ(error.code, Code::kReplicasDiffer) << "both ranks have the norm's state";
  EXPECT_THAT(error.message, HasSubstr("optimizer.state.param.decoder.final_layernorm.weight"));
  request.check_replicas = ReplicaCheck::kNone;
  EXPECT_TRUE(convert_now(request)) << "the first rank's is sound";
}

TEST_F(FlatStates, ThatLackAPartAreRefused) {
  ConvertRequest request = keeping(golden_path(kBuckets), place_ / "out");
  request.exclude = {"optimizer.*.exp_avg"};
  EXPECT_THAT(refusal(request).message, HasSubstr("found a bucket without its exp_avg"));
  request.exclude = {"optimizer.*dp_group_idx_1.gbuf*"};
  EXPECT_THAT(refusal(request).message,
              HasSubstr("found no buffer 0 of rank 1, expected one for bfloat16"));
  request.exclude = {"output_layer.weight"};
  EXPECT_THAT(refusal(request).message, HasSubstr("optimizer: found 94784 elements in bucket 0"));
}

// What is in a buffer only common.pt tells, which a copy under its own names has not.
TEST_F(FlatStates, GetTheirNamesInEveryTarget) {
  ConvertRequest named = keeping(golden_path(kBuckets), place_ / "named");
  named.format = "torch_dist";
  ASSERT_TRUE(convert_now(named));
  const TensorMap expected = read_all_tensors(place_ / "named").value();
  for (const char* target : {"dcp", "safetensors"}) {
    ConvertRequest request = keeping(golden_path(kBuckets), place_ / target);
    request.format = target;
    const auto converted = convert_now(request);
    ASSERT_TRUE(converted) << converted.error().text();
    EXPECT_TRUE(converted->checks_master_weights);
    EXPECT_THAT(converted->notes,
                Contains("optimizer states in flat buffers get the names of their tensors"));
    EXPECT_EQ(difference(read_all_tensors(place_ / target).value(), expected), "");
  }
}

TEST_F(FlatStates, KeepTheirNamesWhereNothingTellsWhoseTheyAre) {
  ConvertRequest request = keeping(golden_path(kBuckets), place_ / "out");
  request.format = "dcp";
  request.exclude = {"decoder.final_layernorm.weight"};
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_FALSE(converted->checks_master_weights);
  EXPECT_THAT(converted->notes,
              Contains(HasSubstr("which nothing in the new checkpoint explains")));
  TensorMap expected = read_all_tensors(golden_path(kBuckets)).value();
  expected.erase("decoder.final_layernorm.weight");
  EXPECT_EQ(difference(read_all_tensors(place_ / "out").value(), expected), "");
}

}  // namespace
}  // namespace shardwright
