// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "verify/digest.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

std::string digest_at(const std::string& path, const ProofOptions& options = {}) {
  const auto report = hash_checkpoint(path, options);
  return report ? report->model_digest : report.error().text();
}

// The definition of docs/formats/digest.md, computed with the xxhash package of Python.
TEST(Digest, IsWhatTheDocumentSays) {
  Digest tensor = begin_digest({"any name", DType::kBF16, {2, 3}});
  tensor.add("0123456789ab");
  EXPECT_EQ(tensor.text(), "9b8f6cad1e8d0cf630967682f9f800e9");
  EXPECT_EQ(begin_digest({"scalar", DType::kF32, {}}).text(), "ef9b5d98516d5238f226340c848f1065");
  const std::vector<TensorHash> two = {{{"a", DType::kU8, {1}}, std::string(32, '0')},
                                       {{"b", DType::kU8, {1}}, std::string(32, 'f')}};
  EXPECT_EQ(digest_of(two), "7d80ac45d3235a9f07b25bdfc1b67b9b");
}

TEST(Hash, IsTheSameInEveryFormatAndLayout) {
  const Planted made;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 2, 1, 1, 2}, made.path());
  const std::string expected = digest_at(golden_path("hf/llama3/hf"));
  EXPECT_EQ(expected.size(), 32u) << expected;
  EXPECT_EQ(digest_at(golden_path("hf/llama3/legacy_tp2pp2ep1")), expected);
  EXPECT_EQ(digest_at(made.path()), expected);
  Planted::convert("hf/llama3/hf", "torch_dist", {}, made.place() / "tp1");
  EXPECT_EQ(digest_at(made.place() / "tp1"), expected);
  // This one was computed with Python alone.
  EXPECT_EQ(digest_at(golden_path("hf/llama3/hf"), {.own_names = true}),
            "007feb3ea07098989bfc6a3244364d92");
  EXPECT_NE(digest_at(golden_path("hf/llama3_4l/hf")), expected);
}

// Digests of a part, and differences between parts, would be taken for those of a model.
TEST(Hash, RefusesWhatLostAPart) {
  const std::string lossy = golden_path("dcp/mlite_lost_experts");
  const auto refused = hash_checkpoint(lossy, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLossySource);
  const auto difference = diff_checkpoints(lossy, lossy, {}, std::nullopt);
  ASSERT_FALSE(difference);
  EXPECT_EQ(difference.error().code, Code::kLossySource);
  const auto accepted = hash_checkpoint(lossy, {.source = {.accept_loss = true}});
  ASSERT_TRUE(accepted) << accepted.error().text();
  EXPECT_THAT(accepted->notes, testing::Contains(HasSubstr("the experts of one EP rank only")));
}

TEST(Hash, TellsOfALaterSaveThanTheTrackers) {
  const Planted made;
  Planted::convert("hf/llama3/hf", "torch_dist", {}, made.path());
  const auto told = testing::Contains(HasSubstr("iter_0000010 is a later save"));
  EXPECT_THAT(hash_checkpoint(made.path(), {})->notes, testing::Not(told));
  made.put("iter_0000010/notes.txt", "x");
  EXPECT_THAT(hash_checkpoint(made.path(), {})->notes, told);
  EXPECT_THAT(show_tensor(made.path(), "decoder.final_layernorm.weight", {})->notes, told);
}

TEST(Hash, OfExpertsIsTheSameWhateverRanksStackedThem) {
  const Planted made;
  Planted::convert("dcp/mlite_sound", "safetensors", {}, made.path());
  EXPECT_EQ(digest_at(made.path()), digest_at(golden_path("dcp/mlite_sound")));
}

TEST(Hash, DoesNotDependOnThreads) {
  const std::string path = golden_path("hf/qwen3/hf");
  EXPECT_EQ(digest_at(path, {.threads = 1}), digest_at(path, {.threads = 7}));
}

TEST(Hash, LeavesVocabularyPaddingOut) {
  const Planted made;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = made.path();
  request.make_vocab_size_divisible_by = 1000;
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(digest_at(made.path()), digest_at(golden_path("hf/llama3/hf")));
  const auto report = hash_checkpoint(made.path(), {.vocab_size = 7}).value();
  for (const TensorHash& tensor : report.model) {
    if (tensor.desc.name != "output_layer.weight") continue;
    EXPECT_EQ(tensor.desc.shape[0], 7);
  }
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("padding rows")));
}

TEST(Hash, OfGivenRowsIsTheSameInEachFormat) {
  const Planted made;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = made.path();
  ASSERT_TRUE(convert_now(request));
  const std::string hf = request.input;
  EXPECT_EQ(digest_at(made.path(), {.vocab_size = 500}), digest_at(hf, {.vocab_size = 500}));
  EXPECT_NE(digest_at(hf, {.vocab_size = 500}), digest_at(hf));
  const auto more = hash_checkpoint(hf, {.vocab_size = 513});
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().text(), HasSubstr("found 512 rows of the vocabulary, expected 513"));
  ProofOptions stored{.vocab_size = 500};
  stored.own_names = true;
  const auto as_stored = hash_checkpoint(hf, stored);
  ASSERT_FALSE(as_stored);
  EXPECT_THAT(as_stored.error().text(), HasSubstr("--vocab-size says nothing of those"));
}

TEST(Hash, OfAnUnknownFamilyIsByStoredNamesAndSaysSo) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  planted.edit_json("config.json", [](auto& config) {
    config["architectures"] = {"NobodysModel"};
    config["model_type"] = "nobody";
  });
  const auto report = hash_checkpoint(planted.path(), {}).value();
  EXPECT_FALSE(report.is_canonical);
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("by the stored names, because")));
}

// Megatron's names need no family; a slip in one that is given is a slip all the same.
TEST(Hash, AndDiffRefuseAFamilyThatIsNone) {
  for (const char* of : {"hf/llama3/hf", "hf/llama3/legacy_tp2pp2ep1"}) {
    const std::string path = golden_path(of);
    const auto refusals = [&](const ProofOptions& options) {
      const auto hash = hash_checkpoint(path, options);
      const auto diff = diff_checkpoints(path, path, options, std::nullopt);
      return std::vector{hash ? "" : hash.error().text(), diff ? "" : diff.error().text()};
    };
    const auto all_have = [](const char* what) { return testing::Each(HasSubstr(what)); };
    ProofOptions options;
    options.choice.family = "nosuch";
    EXPECT_THAT(refusals(options), all_have("nosuch"));
    options.choice.family.clear();
    options.choice.map_files = {"missing.json"};
    EXPECT_THAT(refusals(options), all_have("missing.json"));
    options.choice.map_files.clear();
    options.choice.hf_config_dir = "/nonexistent";
    EXPECT_THAT(refusals(options), all_have("--hf-config /nonexistent: no such folder"));
    options.own_names = true;
    EXPECT_THAT(refusals(options), all_have("--hf-config /nonexistent: no such folder"));
  }
}

TEST(Hash, ListsOptimizerStatesApart) {
  const auto report =
      hash_checkpoint(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"), {}).value();
  ASSERT_FALSE(report.beside.empty());
  EXPECT_EQ(report.beside_digest.size(), 32u);
  EXPECT_THAT(report.beside.front().desc.name, HasSubstr("optimizer.state."));
  for (const TensorHash& tensor : report.model) {
    EXPECT_EQ(tensor.desc.name.find("optimizer"), std::string::npos);
  }
}

TEST(Manifest, ReadsWhatWasWritten) {
  const auto report =
      hash_checkpoint(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"), {}).value();
  const auto read = read_manifest(write_manifest(report)).value();
  EXPECT_EQ(read.model_digest, report.model_digest);
  EXPECT_EQ(read.is_canonical, report.is_canonical);
  ASSERT_EQ(read.model.size(), report.model.size());
  ASSERT_EQ(read.beside.size(), report.beside.size());
  EXPECT_EQ(read.model[3].desc.name, report.model[3].desc.name);
  EXPECT_EQ(read.model[3].desc.shape, report.model[3].desc.shape);
  EXPECT_EQ(read.model[3].desc.dtype, report.model[3].desc.dtype);
  EXPECT_EQ(read.model[3].digest, report.model[3].digest);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(Manifest, RefusesWhatIsNone) {
  HashReport empty;
  empty.model_digest = digest_of({});
  const std::string good = write_manifest(empty);
  ASSERT_TRUE(read_manifest(good));
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string(R"({"schema": "other"})"),
        std::string(R"({"schema": "shardwright/hash/1"})"), replaced(good, "xxh3-128", "sha256"),
        replaced(good, "stored", "others"),
        replaced(good, empty.model_digest, std::string(32, '0')),
        good.substr(0, good.find("\"tensors\"")) + R"("tensors": [{"name": 1}]})"}) {
    const auto read = read_manifest(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, Code::kJsonCorrupt);
  }
}

}  // namespace
}  // namespace shardwright
