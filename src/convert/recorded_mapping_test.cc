// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "canonical/families.h"
#include "convert/golden.h"
#include "layout/component_spec.h"
#include "state/source_keys.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

ConvertRequest mapping_request(const std::string& input, const std::string& output,
                               std::string_view format) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  if (format == "mimo") {
    const std::vector<std::string> layout = {"language=tp=1", "images=tp=1"};
    request.components = parse_components(layout).value();
  }
  return request;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// A golden model under an architecture that no family names.
void put_unknown(const TemporaryFolder& folder, const std::string& golden,
                 std::string_view architecture, std::string_view model_type) {
  fs::copy(golden_path(golden), folder / "in", fs::copy_options::recursive);
  fs::permissions(folder / "in", fs::perms::owner_all, fs::perm_options::add);
  fs::remove(folder / "in/config.json");
  std::string config = replaced(read_golden(golden + "/config.json"), architecture, "Unheard");
  config = replaced(config, "\"model_type\": \"" + std::string(model_type) + "\"",
                    "\"model_type\": \"unheard\"");
  folder.put("in/config.json", config);
}

// There with flags, and back without.
void expect_way_back(const TemporaryFolder& folder, const ConvertRequest& there) {
  ASSERT_FALSE(prepare_conversion(mapping_request(there.input, there.output, there.format)));
  const auto done = convert_now(there);
  ASSERT_TRUE(done) << done.error().text();
  for (const std::string& file : there.map_files) fs::remove(file);
  const auto back = convert_now(mapping_request(folder / "out", folder / "back", "hf"));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->family, done->family);
  EXPECT_EQ(difference(read_all_tensors(folder / "back").value(),
                       read_all_tensors(folder / "in").value()),
            "");
  EXPECT_EQ(folder.get("back/config.json"), folder.get("in/config.json"));
}

class RecordedFamily : public testing::TestWithParam<std::string_view> {};

TEST_P(RecordedFamily, IsThereOnTheWayBack) {
  const bool is_mimo = GetParam() == "mimo";
  const TemporaryFolder folder;
  if (is_mimo) {
    put_unknown(folder, "hf/qwen3_vl/hf", "Qwen3VLForConditionalGeneration", "qwen3_vl");
  } else {
    put_unknown(folder, "hf/llama3/hf", "LlamaForCausalLM", "llama");
  }
  ConvertRequest there = mapping_request(folder / "in", folder / "out", GetParam());
  there.family = is_mimo ? "qwen3_vl" : "llama";
  expect_way_back(folder, there);
}

TEST_P(RecordedFamily, ComesWithItsMappingFile) {
  const bool is_mimo = GetParam() == "mimo";
  const TemporaryFolder folder;
  if (is_mimo) {
    put_unknown(folder, "hf/qwen3_vl/hf", "Qwen3VLForConditionalGeneration", "qwen3_vl");
  } else {
    put_unknown(folder, "hf/llama3/hf", "LlamaForCausalLM", "llama");
  }
  folder.put("unheard.json",
             replaced(R"({"family": "unheard", "extends": "BASE", "architectures": ["Unheard"],)"
                      R"( "model_types": ["unheard"]})",
                      "BASE", is_mimo ? "qwen3_vl" : "llama"));
  ConvertRequest there = mapping_request(folder / "in", folder / "out", GetParam());
  there.map_files = {folder / "unheard.json"};
  expect_way_back(folder, there);
  // And on to another layout, which carries the record along.
  const auto on = convert_now(mapping_request(folder / "out", folder / "on", "torch_dist"));
  ASSERT_TRUE(on) << on.error().text();
  const auto again = convert_now(mapping_request(folder / "on", folder / "again", "hf"));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->family, "unheard");
}

INSTANTIATE_TEST_SUITE_P(Targets, RecordedFamily, testing::Values("torch_dist", "legacy", "mimo"));

TEST(RecordedMapping, IsOnlyWhatIsNotBuiltIn) {
  const TemporaryFolder folder;
  folder.put("child.json", R"({"family": "child", "extends": "parent", "architectures": ["C"],)"
                           R"( "model_types": ["c"]})");
  folder.put("parent.json", R"({"family": "parent", "abstract": true, "extends": "llama"})");
  folder.put("other.json", R"({"family": "other", "extends": "llama", "architectures": ["O"],)"
                           R"( "model_types": ["o"]})");
  ConvertRequest request;
  request.map_files = {folder / "other.json", folder / "child.json", folder / "parent.json"};
  Mapping mapping;
  mapping.family = "child";
  const RecordedMapping record = mapping_to_record(request, mapping).value();
  ASSERT_EQ(record.files.size(), 2U);
  EXPECT_EQ(record.files[0].first, "child.json");
  EXPECT_EQ(record.files[1], std::pair(std::string("parent.json"), folder.get("parent.json")));
  EXPECT_EQ(mapping_to_record({}, mapping).value().family, "");
}

TEST(RecordedMapping, IsWhatItWasAndYieldsToFlags) {
  const TemporaryFolder folder;
  const auto file = [](const std::string& type) {
    return R"({"family": "mine", "extends": "llama", "architectures": [")" + type +
           R"("], "model_types": [")" + type + R"("]})";
  };
  Checkpoint source;
  source.source_keys = write_source_keys({}, {"mine", {{"mine.json", file("recorded")}}});
  const auto types_of = [&](const ConvertRequest& request) {
    const Mappings mappings = load_mappings(request, source).value();
    for (const Mapping& mapping : mappings) {
      if (mapping.family == "mine") return mapping.model_types[0];
    }
    return std::string("none");
  };
  EXPECT_EQ(types_of({}), "recorded");
  EXPECT_EQ(told_family({}, source).value(), "mine");
  folder.put("mine.json", file("given"));
  ConvertRequest request;
  request.map_files = {folder / "mine.json"};
  request.family = "qwen3";
  EXPECT_EQ(types_of(request), "given");
  EXPECT_EQ(told_family(request, source).value(), "qwen3");
}

TEST(RecordedMapping, RefusesBrokenRecords) {
  for (const char* broken : {R"({"mapping": 1})", R"({"mapping": {"family": "a"}})",
                             R"({"mapping": {"family": "a", "files": 1}})",
                             R"({"mapping": {"family": "a", "files": [{"name": "b"}]}})", "["}) {
    const auto record = read_recorded_mapping(broken);
    ASSERT_FALSE(record) << broken;
    EXPECT_EQ(record.error().code, Code::kJsonCorrupt);
  }
  EXPECT_EQ(read_recorded_mapping("").value().family, "");
  EXPECT_EQ(read_recorded_mapping("{}").value().family, "");
}

// As Megatron records them.
TEST(ExpertSizes, AreTheModelsWithoutExperts) {
  const TemporaryFolder folder;
  ConvertRequest request =
      mapping_request(golden_path("hf/llama3/hf"), folder / "out", "torch_dist");
  request.parallel.tensor = 2;
  request.parallel.expert_tensor = 1;
  const auto dense = convert_now(request);
  ASSERT_TRUE(dense) << dense.error().text();
  EXPECT_EQ(dense->request.parallel.expert_tensor, 2);
  constexpr const char* kNote = "no use is made of --etp 1: the model has no experts";
  EXPECT_THAT(dense->notes, testing::Contains(kNote));
  const Checkpoint made = open_checkpoint(folder / "out").value();
  EXPECT_EQ(made.arguments.at("expert_tensor_parallel_size"), ArgValue{std::int64_t{2}});
  request.parallel.expert_tensor = 2;
  EXPECT_THAT(prepare_conversion(request).value().notes, testing::Not(testing::Contains(kNote)));
  request.parallel.expert = 2;
  const auto settled = prepare_conversion(request).value();
  EXPECT_EQ(settled.request.parallel.expert, 1);
  EXPECT_THAT(settled.notes,
              testing::Contains("no use is made of --ep 2: the model has no experts"));
  request.input = golden_path("hf/qwen3_moe/hf");
  EXPECT_EQ(prepare_conversion(request).value().request.parallel.expert, 2);
  EXPECT_EQ(prepare_conversion(request).value().request.parallel.expert_tensor, 2);
}

}  // namespace
}  // namespace shardwright
