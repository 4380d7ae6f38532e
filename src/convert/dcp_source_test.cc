// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "convert/golden.h"
#include "shardwright/checkpoint.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

std::string fixture(std::string_view name) { return golden_path("dcp/" + std::string(name)); }

ConvertRequest to_safetensors(const std::string& input, const std::string& output) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "safetensors";
  request.optimizer = OptimizerPolicy::kKeep;
  return request;
}

class DcpSource : public testing::TestWithParam<const char*> {};

// Whatever wrote it: the whole tensors, bit by bit, through the whole program.
TEST_P(DcpSource, EqualsWhatWasSaved) {
  const TemporaryFolder folder;
  const auto done = convert_now(to_safetensors(fixture(GetParam()) + "/ckpt", folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  const auto got = read_all_tensors(folder / "out");
  const auto truth = read_all_tensors(fixture(GetParam()));
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_TRUE(truth) << truth.error().text();
  EXPECT_FALSE(truth->empty());
  EXPECT_EQ(difference(*got, *truth), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DcpSource,
                         testing::Values("fsdp2_uneven", "fsdp2_tp2_uneven", "strided_rows7",
                                         "noncontiguous", "views", "optimizer", "zstd_twice",
                                         "safetensors_items", "rank_local", "hf_sharded",
                                         "hf_empty_shard"),
                         [](const auto& tested) { return std::string(tested.param); });

Error refusal_of(const std::string& input) {
  const TemporaryFolder folder;
  const auto done = convert_now(to_safetensors(input, folder / "out"));
  if (done) return Error{Code::kInternal, "it was converted"};
  EXPECT_FALSE(fs::exists(folder / "out"));
  return done.error();
}

TEST(DcpSourceRefusal, NamesAForeignExtension) {
  const Error error = refusal_of(fixture("foreign_extension") + "/ckpt");
  EXPECT_EQ(error.code, Code::kItemTransformed);
  EXPECT_THAT(error.message, HasSubstr("test.xor@example.com/2"));
}

TEST(DcpSourceRefusal, FindsScalarsThatConsolidationLost) {
  const Error error = refusal_of(fixture("hf_scalar") + "/ckpt");
  EXPECT_EQ(error.code, Code::kReplicasDiffer);
  EXPECT_THAT(error.message, HasSubstr("tensor scalar"));
  const TemporaryFolder folder;
  const auto done =
      convert_now(to_safetensors(fixture("hf_scalar") + "/ckpt/sharded", folder / "o"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(difference(*read_all_tensors(folder / "o"), *read_all_tensors(fixture("hf_scalar"))),
            "");
}

TEST(DcpSourceNote, SaysThatStridedShardsWereRepaired) {
  const TemporaryFolder folder;
  const auto done = convert_now(to_safetensors(fixture("strided_rows7") + "/ckpt", folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(done->notes, testing::ElementsAre(HasSubstr("tensor rows7:")));
}

std::string copy_of(std::string_view name, const TemporaryFolder& folder) {
  const std::string target = folder / "copy";
  fs::copy(fixture(name) + "/ckpt", target, fs::copy_options::recursive);
  fs::permissions(target, fs::perms::owner_all, fs::perm_options::add);
  return target;
}

TEST(DcpSourceRefusal, WantsEveryRanksMetadata) {
  const TemporaryFolder folder;
  const std::string copy = copy_of("rank_local", folder);
  fs::copy(copy + "/__1.metadata", copy + "/__2.metadata");
  fs::remove(copy + "/__1.metadata");
  const Error error = refusal_of(copy);
  EXPECT_EQ(error.code, Code::kMetadataCorrupt);
  EXPECT_THAT(error.message, HasSubstr("__1.metadata: not found"));
}

TEST(DcpSourceRefusal, FindsAShardThatIsMissing) {
  const TemporaryFolder folder;
  const std::string copy = copy_of("rank_local", folder);
  fs::remove(copy + "/__1.metadata");
  EXPECT_EQ(refusal_of(copy).code, Code::kHole);
}

// Overwrites `count` bytes behind the first occurrence of `mark`.
void damage(const std::string& path, std::string_view mark, std::size_t behind,
            std::string_view bytes) {
  std::string text;
  {
    std::ifstream file(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::size_t at = text.find(mark);
  ASSERT_NE(at, std::string::npos);
  text.replace(at + behind, bytes.size(), bytes);
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add);
  std::ofstream(path, std::ios::binary) << text;
}

// Ranks that hold nothing of a tensor say where that nothing lies, too.
TEST(DcpSource, EmptyChunksMayLieInOnePlace) {
  const TemporaryFolder folder;
  fs::copy(fixture("noncontiguous") + "/ckpt", folder / "ckpt", fs::copy_options::recursive);
  edit_metadata(folder / "ckpt", [](Catalog& catalog) {
    StoredTensor& tensor = *std::ranges::find_if(
        catalog.tensors, [](const StoredTensor& each) { return each.desc.shape.size() == 2; });
    for (const std::int64_t column : {0, 1}) {
      const Box nothing{{tensor.desc.shape[0], column}, {0, 1}};
      tensor.chunks.push_back({nothing, tensor.chunks.file(0), {0, 0}, {}});
    }
  });
  const auto done = convert_now(to_safetensors(folder / "ckpt", folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(difference(read_all_tensors(folder / "out").value(),
                       read_all_tensors(fixture("noncontiguous")).value()),
            "");
}

TEST(DcpSourceRefusal, FindsDamagedZstd) {
  const TemporaryFolder folder;
  const std::string copy = copy_of("zstd_twice", folder);
  damage(copy + "/__0_0.distcp", "\x28\xb5\x2f\xfd", 0, "BAD!");
  const Error error = refusal_of(copy);
  EXPECT_EQ(error.code, Code::kItemTransformed);
  EXPECT_THAT(error.message, HasSubstr("expected zstd frames"));
}

TEST(DcpSourceRefusal, FindsShardOffsetsThatAreMissing) {
  const TemporaryFolder folder;
  const std::string copy = copy_of("hf_sharded", folder);
  for (const auto& entry : fs::directory_iterator(copy)) {
    damage(entry.path(), "saved_offsets", 0, "saved_0ffsets");
  }
  const Error error = refusal_of(copy);
  EXPECT_EQ(error.code, Code::kMetadataCorrupt);
  EXPECT_THAT(error.message, HasSubstr("saved_offsets does not say"));
}

TEST(DcpSourceRefusal, FindsRanksWhoseReplicasDiffer) {
  const TemporaryFolder folder;
  const std::string copy = copy_of("rank_local", folder);
  ConvertRequest request = to_safetensors(copy, folder / "out");
  request.include = {"rep"};
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  const Chunk second = prepared->plan.source.tensors[0].chunks[1];
  const std::string path = copy + "/" + prepared->plan.source.files[second.file];
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add);
  alter_sealed(path, second.range, 0, '\x55');
  const auto done = convert_now(request);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kReplicasDiffer) << done.error().text();
}

// What describes the model may lie above the checkpoint, and counts as its files do.
TEST(DcpSource, RefusesAChangeOfADocumentAboveIt) {
  const TemporaryFolder place;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = place / "top/step1";
  request.format = "dcp";
  ASSERT_TRUE(convert_now(request));
  std::filesystem::copy(golden_path("hf/llama3/hf") + "/config.json", place.path() / "top");
  place.put("top/tokenizer.json", "{}");
  request.input = place / "top/step1";
  request.output = place / "out";
  request.format = "hf";
  {
    const auto planned = prepare_conversion(request);
    ASSERT_TRUE(planned) << planned.error().text();
    const PreparedConversion& prepared = *planned;
    place.put("top/tokenizer.json", R"({"longer": 1})");
    const auto done = run_conversion(prepared, {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kSourceChanged);
    EXPECT_FALSE(std::filesystem::exists(place / "out"));
  }
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(place.get("out/tokenizer.json"), R"({"longer": 1})");
}

// A model in DCP files, each name of a tensor with another beginning.
std::string put_renamed(const TemporaryFolder& folder, const char* format,
                        const std::string& before, const std::string& now,
                        const std::string& model = golden_path("hf/llama3/hf")) {
  ConvertRequest request = to_safetensors(model, folder / "renamed");
  request.format = format;
  EXPECT_TRUE(convert_now(request));
  const std::string stored = open_checkpoint(folder / "renamed").value().location.path;
  edit_metadata(stored, [&](Catalog& catalog) {
    catalog.objects.clear();
    for (StoredTensor& tensor : catalog.tensors) {
      if (tensor.desc.name.starts_with(before)) {
        tensor.desc.name = now + tensor.desc.name.substr(before.size());
      }
    }
  });
  return stored;
}

Result<PreparedConversion> converted(const std::string& input, const std::string& output,
                                     const char* format,
                                     const std::string& config = golden_path("hf/llama3/hf")) {
  ConvertRequest request = to_safetensors(input, output);
  request.format = format;
  request.optimizer = OptimizerPolicy::kDefault;
  request.hf_config_dir = config;
  return convert_now(request);
}

class TorchDcpSource : public testing::TestWithParam<const char*> {};

// As Megatron saves with --use-torch-fsdp2 --ckpt-format torch_dcp: gates are whole there. Those of
// a vision-language model stand behind `language_model.` and the like.
TEST_P(TorchDcpSource, HasMegatronsNamesBehindTheModels) {
  const std::string model = golden_path("hf/" + std::string(GetParam()) + "/hf");
  const TemporaryFolder folder;
  const std::string dcp = put_renamed(folder, "fsdp_dtensor", "model.module.", "model.", model);
  EXPECT_EQ(open_checkpoint(dcp).value().location.format, "torch_dcp");
  const auto to_hf = converted(dcp, folder / "hf", "hf", model);
  ASSERT_TRUE(to_hf) << to_hf.error().text();
  EXPECT_TRUE(converted(model, folder / "f32", "fsdp_dtensor", model));
  EXPECT_TRUE(converted(folder / "f32", folder / "truth", "hf", model));
  EXPECT_EQ(difference(*read_all_tensors(folder / "hf"), *read_all_tensors(folder / "truth")), "");
  const auto to_megatron = converted(dcp, folder / "dist", "torch_dist", model);
  ASSERT_TRUE(to_megatron) << to_megatron.error().text();
  const TensorMap made = read_all_tensors(folder / "dist").value();
  for (const auto& [name, tensor] : made) {
    EXPECT_FALSE(name.starts_with("model.")) << name;
  }
  const auto kept = converted(dcp, folder / "kept", "dcp", model);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(difference(*read_all_tensors(folder / "kept"), *read_all_tensors(dcp)), "");
}

INSTANTIATE_TEST_SUITE_P(Models, TorchDcpSource, testing::Values("llama3", "qwen3_vl"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(TorchDcpNames, OtherNamesBeforeMegatronsAreRefused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(converted(golden_path("hf/llama3/hf"), folder / "dist", "torch_dist"));
  const std::string dcp = put_renamed(folder, "dcp", "", "net.", folder / "dist");
  for (const char* format : {"torch_dist", "legacy", "fsdp_dtensor"}) {
    const auto done = converted(dcp, folder / "out", format);
    ASSERT_FALSE(done) << format;
    EXPECT_EQ(done.error().code, Code::kNoFamily);
    EXPECT_THAT(done.error().message, HasSubstr("outermost"));
    EXPECT_FALSE(fs::exists(folder / "out"));
  }
}

class PrefixedDcp : public testing::TestWithParam<const char*> {};

// Composer's state of a run among them, which is no optimizer's.
TEST_P(PrefixedDcp, IsTheModelBehindAnyNames) {
  const TemporaryFolder folder;
  const auto done = converted(put_renamed(folder, "dcp", "", GetParam()), folder / "out", "hf");
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(
      difference(*read_all_tensors(folder / "out"), *read_all_tensors(golden_path("hf/llama3/hf"))),
      "");
}

INSTANTIATE_TEST_SUITE_P(Prefixes, PrefixedDcp,
                         testing::Values("state.model.model.", "state.", "x.state.y.", "app.model.",
                                         "_orig_mod.", "module."));

// As save_pretrained() writes them of a model that is still wrapped.
TEST(WrappedSafetensors, HaveTheModelsNames) {
  for (const char* wrapper : {"_orig_mod.", "module.", "base_model.model."}) {
    const TemporaryFolder folder;
    EXPECT_TRUE(
        convert_now(to_safetensors(put_renamed(folder, "dcp", "", wrapper), folder / "model")));
    fs::copy(golden_path("hf/llama3/hf/config.json"), folder / "model/config.json");
    const auto done = converted(folder / "model", folder / "out", "hf");
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_THAT(done->notes, testing::Contains(HasSubstr("names are taken without")));
    EXPECT_EQ(difference(*read_all_tensors(folder / "out"),
                         *read_all_tensors(golden_path("hf/llama3/hf"))),
              "");
  }
}

}  // namespace
}  // namespace shardwright
