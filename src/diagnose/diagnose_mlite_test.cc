// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "convert/golden.h"
#include "dcp/rank_metadata.h"
#include "shardwright/diagnose.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;

namespace fs = std::filesystem;

std::string fixture(std::string_view name) { return golden_path("dcp/" + std::string(name)); }

// Only the metadata is kept of these: no byte of their files is read before they are refused.
std::string with_empty_files(std::string_view name, const TemporaryFolder& folder) {
  std::string copy = folder / "copy";
  fs::copy(fixture(name) + "/step_3", copy, fs::copy_options::recursive);
  fs::permissions(copy, fs::perms::owner_all, fs::perm_options::add);
  const auto directory = open_local_directory(copy).value();
  const DcpMetadata metadata = read_any_metadata(*directory, {}).value();
  for (const std::string& file : metadata.catalog.files) {
    std::ofstream(copy + "/" + file).close();
    fs::resize_file(copy + "/" + file, 1 << 20);
  }
  return copy;
}

TEST(MliteLoss, IsFoundByDiagnose) {
  const TemporaryFolder folder;
  for (const std::string& path :
       {fixture("mlite_lost_experts"), with_empty_files("mlite_lost_rows", folder)}) {
    const auto diagnosis = diagnose({.path = path});
    ASSERT_TRUE(diagnosis) << diagnosis.error().text();
    std::vector<std::string> codes;
    for (const Finding& finding : diagnosis->findings) codes.push_back(finding.code);
    EXPECT_THAT(codes, Contains("L37"));
    EXPECT_TRUE(diagnosis->has_errors());
    const TemporaryFolder out;
    ConvertRequest request;
    request.input = path;
    request.output = out / "out";
    request.format = "dcp";
    const auto refused = convert_now(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kLossySource);
    EXPECT_FALSE(fs::exists(out / "out"));
  }
}

TEST(MliteSizes, AreToldByDiagnose) {
  const auto diagnosis = diagnose({.path = fixture("mlite_ep2_etp2_tp2") + "/step_3"});
  ASSERT_TRUE(diagnosis) << diagnosis.error().text();
  EXPECT_EQ(diagnosis->sizes.expert, 2);
  EXPECT_EQ(diagnosis->sizes.expert_tensor, 2);
  EXPECT_EQ(diagnosis->sizes.tensor, 2);
  EXPECT_FALSE(diagnosis->has_errors());
}

}  // namespace
}  // namespace shardwright
