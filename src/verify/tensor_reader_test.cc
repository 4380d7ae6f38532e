// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "shardwright/reader.h"
#include "testing/temporary_folder.h"
#include "testing/tensor_records.h"
#include "verify/option_words.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string bytes_of_box(TensorReader& reader, std::size_t tensor, const Box& box) {
  const TensorDesc& desc = reader.tensors()[tensor];
  std::string bytes(static_cast<std::size_t>(byte_count(box.shape, desc.dtype).value()), '\0');
  const Status status = reader.read(tensor, box, std::as_writable_bytes(std::span(bytes)));
  EXPECT_TRUE(status) << status.error().text();
  return bytes;
}

std::string whole(TensorReader& reader, std::size_t tensor) {
  return bytes_of_box(reader, tensor, Box::whole(reader.tensors()[tensor].shape));
}

// Each tensor of a model in Megatron's names, whatever the checkpoint.
std::map<std::string, std::string> canonical_digests(const std::string& path) {
  TensorReader reader = TensorReader::open(path, Naming::kCanonical).value();
  std::map<std::string, std::string> digests;
  for (std::size_t i = 0; i < reader.tensors().size(); ++i) {
    digests[reader.tensors()[i].name] = content_digest(whole(reader, i));
  }
  return digests;
}

TEST(TensorReader, OrderIsThatOfTheBytesInTheFiles) {
  const TemporaryFolder folder;
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},)"
                             R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  folder.put("model.safetensors", file + header + "xyz");
  const TensorReader reader = TensorReader::open(folder / "").value();
  std::vector<std::string> names;
  for (const std::size_t tensor : reader.order()) names.push_back(reader.tensors()[tensor].name);
  EXPECT_THAT(names, ElementsAre("b", "c", "a"));
}

TEST(TensorReader, PutsPiecesTogetherInEveryFormat) {
  const Planted planted;
  const std::string source = golden_path("hf/llama3/hf");
  const auto expected = canonical_digests(source);
  ASSERT_GT(expected.size(), 10u);
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 2}, planted.place() / "td");
  Planted::convert("hf/llama3/hf", "legacy", {2, 2}, planted.place() / "legacy");
  auto rows = canonical_digests(planted.place() / "td");
  EXPECT_EQ(rows, expected);
  rows = canonical_digests(planted.place() / "legacy");
  // Files of ranks have rows of padding that a Hugging Face model lacks.
  for (const char* padded : {"embedding.word_embeddings.weight", "output_layer.weight"}) {
    rows[padded] = expected.at(padded);
  }
  EXPECT_EQ(rows, expected);
}

TEST(TensorReader, ReadsBoxes) {
  TensorReader reader = TensorReader::open(golden_path("hf/llama3/hf")).value();
  const std::optional<std::size_t> tensor = reader.find("model.embed_tokens.weight");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(reader.find("model.embed_tokens.bias"), std::nullopt);
  EXPECT_FALSE(reader.has_megatron_names());
  const TensorDesc& desc = reader.tensors()[*tensor];
  const std::string all = whole(reader, *tensor);
  const auto element = static_cast<std::size_t>(bytes_of(desc.dtype));
  const auto width = static_cast<std::size_t>(desc.shape[1]);
  const std::string box = bytes_of_box(reader, *tensor, {{3, 5}, {2, 4}});
  EXPECT_EQ(box, all.substr((3 * width + 5) * element, 4 * element) +
                     all.substr((4 * width + 5) * element, 4 * element));
  EXPECT_THAT(bytes_of_box(reader, *tensor, {{3, 5}, {0, 4}}), IsEmpty());
  EXPECT_TRUE(reader.check_unchanged());
}

TEST(TensorReader, RefusesWhatDoesNotFit) {
  TensorReader reader = TensorReader::open(golden_path("hf/llama3/hf")).value();
  std::vector<std::byte> memory(64);
  const std::size_t count = reader.tensors().size();
  const auto code = [&](std::size_t tensor, const Box& box, std::size_t bytes) {
    const Status status = reader.read(tensor, box, std::span(memory).first(bytes));
    return status ? Code{} : status.error().code;
  };
  const std::size_t tensor = reader.find("model.embed_tokens.weight").value();
  const Dims shape = reader.tensors()[tensor].shape;
  const auto element = static_cast<std::size_t>(bytes_of(reader.tensors()[tensor].dtype));
  EXPECT_EQ(code(tensor, {{0, 0}, {1, 4}}, 4 * element), Code{});
  EXPECT_EQ(code(count, {{0, 0}, {1, 4}}, 4 * element), Code::kOutOfBounds);
  EXPECT_EQ(code(tensor, {{0, 0}, {1, 4}}, 4 * element - 1), Code::kOutOfBounds);
  EXPECT_EQ(code(tensor, {{0, 0}, {1, 4}}, 4 * element + 1), Code::kOutOfBounds);
  EXPECT_EQ(code(tensor, {{shape[0], 0}, {1, 4}}, 4 * element), Code::kOutOfBounds);
  EXPECT_EQ(code(tensor, {{-1, 0}, {1, 4}}, 4 * element), Code::kOutOfBounds);
  EXPECT_EQ(code(tensor, {{0}, {4}}, 4 * element), Code::kOutOfBounds);
}

TEST(TensorReader, ReadsEntriesThatAreNoTensors) {
  const Planted planted;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 1}, planted.path());
  TensorReader reader = TensorReader::open(planted.path()).value();
  EXPECT_TRUE(reader.has_megatron_names());
  ASSERT_FALSE(reader.objects().empty());
  EXPECT_THAT(reader.read_object(0).value(), HasSubstr("PK"));
  EXPECT_EQ(reader.read_object(reader.objects().size()).error().code, Code::kOutOfBounds);
}

TEST(TensorReader, OfNoModelHasStoredNamesOnly) {
  const Planted planted;
  planted.put_header("model.safetensors",
                     R"({"t.w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "abc");
  const auto canonical = TensorReader::open(planted.path(), Naming::kCanonical);
  ASSERT_FALSE(canonical);
  EXPECT_NE(canonical.error().code, Code{});
  TensorReader stored = TensorReader::open(planted.path()).value();
  EXPECT_EQ(whole(stored, 0), "abc");
  EXPECT_EQ(stored.location().format, "hf");
  // A tensor is held against its file when it is read.
  planted.put("model.safetensors", planted.get("model.safetensors") + "x");
  EXPECT_EQ(stored.check_unchanged().error().code, Code::kSourceChanged);
}

// Bit by bit, boxes included, what a conversion writes to files.
TEST(TensorReader, GivesHuggingFaceTensorsAsAConversionWritesThem) {
  const Planted planted;
  Planted::convert("hf/qwen3/hf", "torch_dist", {2, 2}, planted.place() / "td");
  TensorReader files = TensorReader::open(golden_path("hf/qwen3/hf")).value();
  ReadOptions options;
  options.naming = Naming::kHf;
  TensorReader reader = TensorReader::open(planted.place() / "td", options).value();
  ASSERT_EQ(reader.tensors().size(), files.tensors().size());
  EXPECT_TRUE(reader.has_megatron_names());  // those that are stored
  EXPECT_TRUE(reader.objects().empty());
  for (std::size_t i = 0; i < reader.tensors().size(); ++i) {
    const TensorDesc& desc = reader.tensors()[i];
    const std::size_t same = files.find(desc.name).value();
    EXPECT_EQ(desc.shape, files.desc(same).shape);
    EXPECT_EQ(whole(reader, i), whole(files, same)) << desc.name;
    Box box = Box::whole(desc.shape);
    for (int axis = 0; axis < desc.shape.size(); ++axis) {
      box.origin[axis] = desc.shape[axis] / 3;
      box.shape[axis] = desc.shape[axis] / 2;
    }
    EXPECT_EQ(bytes_of_box(reader, i, box), bytes_of_box(files, same, box)) << desc.name;
  }
  EXPECT_THAT(reader.documents(), Contains("config.json"));
  EXPECT_THAT(reader.read_document("config.json").value(), HasSubstr("Qwen3ForCausalLM"));
  EXPECT_EQ(reader.read_document("x").error().code, Code::kNotFound);
  std::vector<std::byte> memory(4);
  EXPECT_EQ(reader.read(0, {{-1, 0}, {1, 2}}, memory).error().code, Code::kOutOfBounds);
}

TEST(TensorReader, FindsStacksByName) {
  TensorReader reader = TensorReader::open(golden_path("hf/llama3/hf"), Naming::kCanonical).value();
  const auto stack = reader.find("decoder.layers.mlp.linear_fc2.weight");
  ASSERT_TRUE(stack);
  EXPECT_GE(*stack, reader.tensors().size());  // it is not listed
  EXPECT_EQ(reader.desc(*stack).shape, (Dims{3, 64, 96}));
  std::string layers(3 * 64 * 96 * 2, '\0');
  ASSERT_TRUE(
      reader.read(*stack, Box::whole({3, 64, 96}), std::as_writable_bytes(std::span(layers))));
  std::string expected;
  for (const int layer : {0, 1, 2}) {
    const auto name = fmt::format("decoder.layers.{}.mlp.linear_fc2.weight", layer);
    expected += whole(reader, reader.find(name).value());
  }
  EXPECT_EQ(layers, expected);
}

TEST(TensorReader, RefusesOptionsThatChangeNothing) {
  ReadOptions options;
  options.family.hf_config_dir = "x";
  const std::string path = golden_path("hf/llama3/hf");
  EXPECT_EQ(TensorReader::open(path, options).error().code, Code::kUsage);
  options = {};
  options.naming = Naming::kCanonical;
  options.dtype = DType::kF16;
  const auto refused = TensorReader::open(path, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("dtype= is for names=\"hf\""));
}

TEST(TensorReader, OfNoFamilyNamesTheWayOutAsAnOption) {
  ReadOptions options;
  options.naming = Naming::kHf;
  const std::string path = golden_path("mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full");
  const auto refused = TensorReader::open(path, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNoFamily);
  EXPECT_THAT(refused.error().message, HasSubstr("give hf_config="));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("--")));
  options.family.hf_config_dir = golden_path("hf/llama3/hf") + "/config.json";
  options.family.family = "nobody";
  EXPECT_EQ(TensorReader::open(path, options).error().code, Code::kNoFamily);
  options.family.hf_config_dir = "nowhere/config.json";
  EXPECT_EQ(TensorReader::open(path, options).error().code, Code::kNotFound);
}

TEST(TensorReader, OfMegatronNamesRefusesAFamilyThatIsNone) {
  ReadOptions options;
  options.naming = Naming::kCanonical;
  const std::string path = golden_path("hf/llama3/legacy_tp2pp2ep1");
  options.family.family = "nobody";
  const auto unknown = TensorReader::open(path, options);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kNoFamily);
  options.family.family.clear();
  options.family.hf_config_dir = "nowhere";
  const auto nowhere = TensorReader::open(path, options);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::kNotFound);
  EXPECT_THAT(nowhere.error().message, Not(HasSubstr("--")));
}

// Those of one tensor do not hinder who reads another.
TEST(TensorReader, ComparesReplicasOfWhatHuggingFaceTensorsAreMadeOf) {
  ReadOptions options;
  options.naming = Naming::kHf;
  const std::string path = golden_path("replica/diverged");
  TensorReader reader = TensorReader::open(path, options).value();
  EXPECT_THAT(whole(reader, reader.find("lm_head.weight").value()), Not(IsEmpty()));
  const std::size_t norm = reader.find("model.norm.weight").value();
  std::vector<std::byte> memory(2);
  const Status refused = reader.read(norm, {{0}, {1}}, memory);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
  EXPECT_THAT(refused.error().message, HasSubstr("take tensor rank N's with replica=N"));
  std::vector<std::string> taken;
  for (const std::int64_t replica : {0, 1}) {
    options.source.replica = replica;
    TensorReader one = TensorReader::open(path, options).value();
    taken.push_back(whole(one, one.find("model.norm.weight").value()));
  }
  EXPECT_NE(taken[0], taken[1]);
}

TEST(OptionWords, AreWholeWords) {
  const auto said = [](std::string text) {
    return in_words_of_options({Code::kUsage, std::move(text)}).message;
  };
  EXPECT_EQ(said("--hf-config, --as"), "hf_config=, as_=");
  EXPECT_EQ(said("--maps --map-x --map"), "--maps --map-x map=");
  EXPECT_EQ(said("--to safetensors keeps it"), "names=\"stored\" keeps it");
  EXPECT_EQ(
      said("take N's with --replica N, or take the first with convert's --check-replicas none"),
      "take N's with replica=N");
  EXPECT_EQ(said("--exclude stays"), "--exclude stays");
}

}  // namespace
}  // namespace shardwright
