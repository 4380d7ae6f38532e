// SPDX-License-Identifier: Apache-2.0
// The table of a MIMO checkpoint's components, which nothing reads tensors by.
#include "format/mimo/component_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/golden.h"
#include "layout/component_spec.h"
#include "shardwright/verify.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> warnings_of(const std::string& path) {
  std::vector<std::string> warnings;
  const VerifyReport report = verify_checkpoint(path, {}).value();
  EXPECT_FALSE(report.has_errors());
  for (const VerifyFinding& finding : report.findings) {
    if (finding.object == kComponentTable) warnings.push_back(finding.message);
  }
  return warnings;
}

TEST(ComponentTable, IsHeldAgainstTheTensors) {
  const TemporaryFolder out;
  ConvertRequest request;
  request.input = golden_path("hf/qwen3_vl/hf");
  request.output = out / "x";
  request.format = "mimo";
  const std::vector<std::string> layout = {"language=tp=2", "images=tp=1"};
  request.components = parse_components(layout).value();
  ASSERT_TRUE(convert_now(request));
  EXPECT_THAT(warnings_of(out / "x"), IsEmpty());
  const std::string file = "x/iter_0000000/components.json";
  const std::string table = out.get(file);
  const auto put = [&](const std::string& from, const std::string& to) {
    std::string edited = table;
    ASSERT_NE(edited.find(from), std::string::npos);
    out.put(file, edited.replace(edited.find(from), from.size(), to));
  };
  put("\"images\"", "\"imags\"");
  EXPECT_THAT(warnings_of(out / "x"), ElementsAre(HasSubstr("component imags has no tensors"),
                                                  HasSubstr("component images is missing")));
  put("\"tp\": 2", "\"tp\": 4");
  EXPECT_THAT(warnings_of(out / "x"),
              ElementsAre(HasSubstr("component language: found 2 ranks, expected 4")));
  put("\"rank_offset\": 2", "\"rank_offset\": 1");
  EXPECT_THAT(warnings_of(out / "x"), ElementsAre(HasSubstr("components.json")));
  put("{", "[");
  EXPECT_THAT(warnings_of(out / "x"), ElementsAre(HasSubstr("components.json")));
}

// Other software has files of that name: a Hugging Face model's is no table.
TEST(ComponentTable, IsOnlyAMimoCheckpoints) {
  const TemporaryFolder out;
  std::filesystem::copy(golden_path("hf/llama3/hf"), out / "m");
  EXPECT_THAT(warnings_of(out / "m"), IsEmpty());
  out.put("m/components.json", R"({"style": "default"})");
  EXPECT_THAT(warnings_of(out / "m"), IsEmpty());
}

}  // namespace
}  // namespace shardwright
