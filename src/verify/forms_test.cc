// SPDX-License-Identifier: Apache-2.0
// One model in every format and layout that convert writes: diff finds all forms equal, hash gives
// all of them the same digests, and verify proves each.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <utility>

#include "convert/legacy_golden.h"
#include "layout/component_spec.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A form of a model, made of an earlier one.
struct Form {
  std::string name;
  std::string source;
  std::string_view format;
  ParallelConfig parallel = {};
  std::vector<std::string> components = {};
  std::int64_t shards = 1;
};

struct Model {
  std::string family;
  ParallelConfig first;
  ParallelConfig second;
  std::vector<std::string> components;  // of a MIMO form; empty for models that have none
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.family; }

std::vector<Form> forms_of(const Model& model) {
  std::vector<Form> forms = {
      {"torch_dist", "hf", "torch_dist", model.first},
      {"resharded", "torch_dist", "torch_dist", model.second},
      {"legacy", "torch_dist", "legacy", model.second},
      {"dcp", "torch_dist", "dcp", {}, {}, 3},
      {"safetensors", "resharded", "safetensors"},
      {"hf_again", "legacy", "hf"},
      {"wide_hf", "hf", "hf"},
      {"wide_fsdp", "hf", "fsdp_dtensor", {}, {}, 3},
      {"wide_fsdp_of_legacy", "legacy", "fsdp_dtensor", {}, {}, 2},
      {"wide_dcp", "wide_fsdp", "dcp", {}, {}, 2},
      {"wide_legacy", "wide_fsdp", "legacy", model.first},
  };
  if (model.components.empty()) return forms;
  forms.push_back({"mimo", "hf", "mimo", {}, model.components});
  forms.push_back({"mimo_of_legacy", "legacy", "mimo", {}, model.components});
  forms.push_back({"legacy_of_mimo", "mimo", "legacy", model.first});
  forms.push_back({"hf_of_mimo", "mimo", "hf"});
  return forms;
}

// Megatron-FSDP keeps weights in float32: they are another model than those in 16 bits.
bool is_wide(const std::string& name) { return name.starts_with("wide_"); }

class Forms : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    config_ = golden_path("hf/" + GetParam().family + "/hf");
    paths_["hf"] = config_;
    for (const Form& form : forms_of(GetParam())) {
      ConvertRequest request;
      request.input = paths_.at(form.source);
      request.output = place_ / form.name;
      request.format = form.format;
      request.parallel = form.parallel;
      request.shards = form.shards;
      request.hf_config_dir = config_;
      if (is_wide(form.name)) request.dtype = DType::kF32;
      if (!form.components.empty()) request.components = parse_components(form.components).value();
      const auto done = convert_now(request);
      ASSERT_TRUE(done) << form.name << ": " << done.error().text();
      paths_[form.name] = request.output;
    }
  }

  [[nodiscard]] ProofOptions options() const {
    ProofOptions options;
    options.choice.hf_config_dir = config_;
    return options;
  }

  TemporaryFolder place_;
  std::string config_;
  std::map<std::string, std::string> paths_;
};

std::string text_of(const DiffReport& report) {
  std::string text;
  for (const std::string& name : report.missing_left) text += "left lacks " + name + "\n";
  for (const std::string& name : report.missing_right) text += "right lacks " + name + "\n";
  for (const TensorDifference& each : report.differences) {
    text += fmt::format("{} {} {}, {} {}: {} differ\n", each.left.name, torch_name(each.left.dtype),
                        to_string(each.left.shape), torch_name(each.right.dtype),
                        to_string(each.right.shape), each.differing);
  }
  return text;
}

TEST_P(Forms, AreOneModelAndProven) {
  std::map<bool, std::string> digests;
  std::map<bool, std::string> before;
  for (const auto& [name, path] : paths_) {
    SCOPED_TRACE(name);
    const bool wide = is_wide(name);
    const auto hashed = hash_checkpoint(path, options());
    ASSERT_TRUE(hashed) << hashed.error().text();
    EXPECT_TRUE(hashed->is_canonical);
    EXPECT_EQ(digests.emplace(wide, hashed->model_digest).first->second, hashed->model_digest);
    for (const std::string& other : {before[wide], paths_.at(wide ? "wide_hf" : "hf")}) {
      if (other.empty() || other == path) continue;
      const auto report = diff_checkpoints(other, path, options(), std::nullopt);
      ASSERT_TRUE(report) << report.error().text();
      EXPECT_GT(report->compared, 5U);
      EXPECT_EQ(text_of(*report), "") << other;
    }
    before[wide] = path;
    const bool has_config = name.contains("hf");  // its own, which says its type too
    const auto proof = verify_checkpoint(path, {has_config ? ProofOptions() : options(), {}});
    ASSERT_TRUE(proof) << proof.error().text();
    for (const VerifyFinding& finding : proof->findings) ADD_FAILURE() << finding.message;
    EXPECT_THAT(proof->proven,
                Contains(Field(&Phrase::english, HasSubstr("of this size, shape by shape"))));
    EXPECT_FALSE(proof->family.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, Forms,
    ::testing::Values(
        Model{"llama3", {2, 2, 1, 1, 2}, {1, 3, 1, 1, 1}, {}},
        Model{"qwen3_moe", {2, 2, 1, 2, 1}, {1, 3, 1, 4, 1}, {}},
        Model{"deepseek_v3", {2, 2, 1, 2, 1}, {4, 1, 1, 8, 1}, {}},
        Model{"nemotron_h", {2, 2, 1, 2, 1}, {2, 1, 1, 4, 1}, {}},
        Model{"qwen3_vl", {2, 3, 1, 1, 2}, {1, 1, 1, 1, 1}, {"language=tp=2", "images=tp=1"}},
        Model{
            "qwen35_vl", {2, 2, 1, 1, 2}, {1, 4, 1, 1, 1}, {"language=tp=1,pp=2", "images=tp=2"}}),
    [](const auto& test) { return test.param.family; });

const char* const kFull = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
const char* const kBuckets = "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket";

// What Megatron-LM saved of one model, its optimizer in every way that it has.
class States : public ::testing::Test {
 protected:
  void SetUp() override {
    paths_ = {{"full", golden_path(kFull)},
              {"buckets", golden_path(kBuckets)},
              {"flattened", golden_path("mcore/dense/v0.15.3/tp2pp2-torch_dist-modelspace")},
              {"gathered", golden_path("mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero")}};
    const TensorMap truth = read_all_tensors(golden_path(kFull)).value();
    for (const auto& [name, golden] : {std::pair{"files", "tp2pp2vpp2-torch-fp16opt"},
                                       {"bucket_files", "tp2pp1dp2-torch-bucket"}}) {
      paths_[name] = place_ / name;
      unpack_legacy(read_packed_legacy(fmt::format("mcore/dense_te/v0.16.1/{}.zst", golden)), truth,
                    paths_[name]);
    }
    convert("full", "made_files", "legacy");
    convert("bucket_files", "made_full", "torch_dist");
  }

  void convert(const std::string& from, const std::string& to, std::string_view format) {
    ConvertRequest request;
    request.input = paths_.at(from);
    request.output = place_ / to;
    request.format = format;
    request.parallel = {2, 1, 1, 1, 2};
    request.optimizer = OptimizerPolicy::kKeep;
    const auto done = convert_now(request);
    ASSERT_TRUE(done) << done.error().text();
    paths_[to] = request.output;
  }

  TemporaryFolder place_;
  std::map<std::string, std::string> paths_;
};

TEST_F(States, AreThoseOfTensorsHoweverTheyAreStored) {
  std::string digest;
  for (const auto& [name, path] : paths_) {
    SCOPED_TRACE(name);
    const auto report = diff_checkpoints(golden_path(kFull), path, {}, std::nullopt);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(text_of(*report), "");
    EXPECT_EQ(report->compared, 4 * 27U);
    const auto hashed = hash_checkpoint(path, {});
    ASSERT_TRUE(hashed) << hashed.error().text();
    EXPECT_EQ(hashed->beside.size(), 3 * 27U);
    if (digest.empty()) digest = hashed->beside_digest;
    EXPECT_EQ(hashed->beside_digest, digest);
  }
}

// Whose a state is follows from rules, so its master weight must be its weight; else it is
// nobody's.
TEST_F(States, AreLeftAsTheyAreStoredWhereTheirWeightsAreOthers) {
  const Planted planted;
  Planted::copy(kBuckets, planted);
  const auto norm = show_tensor(planted.path(), "decoder.final_layernorm.weight", {}).value();
  alter_sealed(planted.path() + "/iter_0000010/" + norm.files[0], norm.chunks[0].range, 0, 0x11);
  const auto report = diff_checkpoints(paths_.at("full"), planted.path(), {}, std::nullopt);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->compared, 27U);
  EXPECT_EQ(report->differing, 1U);
  EXPECT_THAT(report->notes,
              Contains(::testing::AllOf(HasSubstr("optimizer states are not compared"),
                                        HasSubstr("found a master weight that"))));
  const auto hashed = hash_checkpoint(planted.path(), {}).value();
  EXPECT_THAT(hashed.notes, Contains(HasSubstr("states are taken as they are stored: ")));
  EXPECT_THAT(hashed.beside.front().desc.name, HasSubstr("optimizer.distributed."));
}

// Of states that no rule names, those of equal layouts are compared, and no others.
TEST_F(States, OfUnknownModulesAreComparedAsTheyAreStored) {
  const Planted planted;
  Planted::copy(kBuckets, planted);
  planted.edit_metadata(
      [](Catalog& catalog) {
        for (StoredTensor& tensor : catalog.tensors) {
          const std::size_t at = tensor.desc.name.find("linear_proj");
          if (at != std::string::npos) tensor.desc.name.replace(at, 11, "linear_warp");
        }
      },
      "iter_0000010/");
  const auto same = diff_checkpoints(planted.path(), planted.path(), {}, std::nullopt).value();
  EXPECT_EQ(same.compared, 27 + 6U);
  EXPECT_TRUE(same.equal());
  const auto other = diff_checkpoints(paths_.at("full"), planted.path(), {}, std::nullopt).value();
  EXPECT_THAT(other.notes, Contains(HasSubstr("linear_warp: found a module")));
  EXPECT_EQ(other.not_compared, 3 * 27 + 6U);
}

// One state that is nobody's does not hide what is wrong with the others.
TEST_F(States, OfEqualNamesAreComparedThoughOthersBelongToNoTensor) {
  const Planted planted;
  Planted::copy(kFull, planted);
  planted.edit_metadata(
      [](Catalog& catalog) {
        tensor_of(catalog, "optimizer.state.exp_avg.decoder.final_layernorm.weight").desc.name =
            "optimizer.state.exp_avg.decoder.other.weight";
      },
      "iter_0000010/");
  for (const auto& [left, right] :
       {std::pair{planted.path(), paths_.at("full")}, {paths_.at("full"), planted.path()}}) {
    const auto report = diff_checkpoints(left, right, {}, std::nullopt);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->compared, 4 * 27 - 1U);
    EXPECT_EQ(report->not_compared, 2U);
    EXPECT_FALSE(report->differs());
    EXPECT_FALSE(report->equal());
    EXPECT_EQ(report->verdict(), "NOT ALL COMPARED");
    EXPECT_THAT(report->notes, Contains(HasSubstr("2 optimizer states are not compared")));
  }
}

// A manifest that was written when buckets had digests of their own still proves them.
TEST_F(States, OfEarlierManifestsAreComparedAsTheyWereHashed) {
  ProofOptions earlier;
  earlier.keeps_stored_states = true;
  const auto hashed = hash_checkpoint(paths_.at("buckets"), earlier).value();
  EXPECT_EQ(hashed.beside.size(), 6U);
  const auto proven = [&](const HashReport& manifest) {
    place_.put("manifest.json", write_manifest(manifest));
    const auto report =
        verify_checkpoint(paths_.at("buckets"), {{}, place_ / "manifest.json"}).value();
    EXPECT_FALSE(report.has_errors());
    return report.proven;
  };
  EXPECT_THAT(proven(hashed),
              Contains(Field(&Phrase::english, HasSubstr("33 digests are those of"))));
  EXPECT_THAT(proven(hash_checkpoint(paths_.at("full"), {}).value()),
              Contains(Field(&Phrase::english, HasSubstr("108 digests are those of"))));
}

TEST_F(States, OfOneSideOnlyAreNotRead) {
  const TemporaryFolder out;
  ConvertRequest request;
  request.input = golden_path(kFull);
  request.output = out / "weights";
  request.format = "torch_dist";
  request.optimizer = OptimizerPolicy::kDrop;
  ASSERT_TRUE(convert_now(request));
  // Whose buckets are would be asked in vain.
  const auto report =
      diff_checkpoints(out / "weights", paths_.at("bucket_files"), {}, std::nullopt).value();
  EXPECT_EQ(text_of(report), "");
  EXPECT_EQ(report.compared, 27U);
}

}  // namespace
}  // namespace shardwright
