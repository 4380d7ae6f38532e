// SPDX-License-Identifier: Apache-2.0
// Files of an output that something takes away while it is being written: a purger of old files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "shardwright/convert.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Takes it away when a phase begins, in whatever folder below.
Result<ConvertReport> converted_without(const TemporaryFolder& folder, RunPhase phase,
                                        const std::string& file) {
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = folder / "out";
  const auto conversion = prepare_conversion(request);
  EXPECT_TRUE(conversion) << conversion.error().text();
  RunOptions options;
  std::size_t removed = 0;
  options.on_phase = [&](RunPhase begun, std::uint64_t) {
    if (begun != phase) return;
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (entry.path().filename() == file) found.push_back(entry.path());
    }
    for (const fs::path& path : found) removed += fs::remove(path) ? 1U : 0U;
  };
  auto report = run_conversion(*conversion, options);
  EXPECT_EQ(removed, 1U);
  return report;
}

TEST(RemovedOutput, OfWeightsIsAnErrorAndNothingAppears) {
  for (const char* file : {"__0_0.distcp", "common.pt", "config.json"}) {
    const TemporaryFolder folder;
    const auto report = converted_without(folder, RunPhase::kPublish, file);
    ASSERT_FALSE(report) << file;
    EXPECT_THAT(report.error().message, HasSubstr(file));
    EXPECT_FALSE(fs::exists(folder / "out")) << file;
  }
}

}  // namespace
}  // namespace shardwright
