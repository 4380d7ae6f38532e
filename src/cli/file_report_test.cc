// SPDX-License-Identifier: Apache-2.0
#include "cli/file_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using namespace std::string_literals;

FileReport report_on(const std::string& path) {
  Result<FileReport> report = inspect_file(path, {});
  EXPECT_TRUE(report) << report.error().message;
  return report ? *std::move(report) : FileReport{};
}

std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + data;
}

TEST(InspectFile, ReadsSafetensors) {
  const TemporaryFolder folder;
  folder.put("any.name", safetensors_file(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32",)"
                                          R"("shape":[2],"data_offsets":[0,8]}})",
                                          "12345678"));
  const FileReport report = report_on(folder / "any.name");
  EXPECT_EQ(report.kind, "safetensors");
  EXPECT_THAT(report.facts, UnorderedElementsAre(Pair("format", "pt")));
  ASSERT_EQ(report.catalog.tensors.size(), 1u);
  EXPECT_EQ(report.catalog.tensors[0].desc.name, "w");
  EXPECT_EQ(report.catalog.tensors[0].chunks.range(0).length, 8u);
  EXPECT_TRUE(report.values.empty());
}

TEST(InspectFile, ReadsPicklesInertly) {
  const TemporaryFolder folder;
  // Protocol 0, protocol 2 with a call, and something behind the end.
  folder.put("old.pkl", "(lp0\nI1\na.");
  folder.put("new", "\x80\x02"s + "cos\nsystem\n(X\x04\x00\x00\x00true"s + "tR.more"s);
  EXPECT_EQ(tree_text(report_on(folder / "old.pkl").values.at(0)), "list [1]\n");
  const FileReport report = report_on(folder / "new");
  EXPECT_EQ(report.kind, "pickle");
  EXPECT_EQ(report.reason, "protocol 2");
  EXPECT_EQ(tree_text(report.values.at(0)), "call os.system\n  arguments: tuple ('true')\n");
  EXPECT_THAT(report.facts, ::testing::Contains(Pair("behind them", "4 bytes not shown")));
}

TEST(InspectFile, ReadsWhatTorchSaved) {
  const fs::path golden = golden_path("torch_save");
  int archives = 0;
  for (const char* version : {"1.6.0", "1.10.2", "2.0.1", "2.6.0", "2.13.0"}) {
    for (const auto& entry : fs::recursive_directory_iterator(golden / version)) {
      const std::string name = entry.path().filename();
      // TorchScript is refused by name: see the reader's own tests.
      if (!name.ends_with(".pt") || name.find("torchscript") != std::string::npos) continue;
      const FileReport report = report_on(entry.path());
      if (name.find("legacy") != std::string::npos) {
        EXPECT_EQ(report.kind, "pickle") << entry.path();
        EXPECT_GE(report.values.size(), 5u) << "magic, version, system, object, keys";
        continue;
      }
      EXPECT_EQ(report.kind, "torch archive") << entry.path();
      ASSERT_EQ(report.values.size(), 1u);
      EXPECT_FALSE(report.values[0].kind.empty());
      ++archives;
    }
  }
  EXPECT_GE(archives, 5);
}

TEST(InspectFile, ReadsPicklesOneBehindAnother) {
  const TemporaryFolder folder;
  folder.put("old.pt", "\x80\x02K\x01."s + "\x80\x02K\x02."s + "storages");
  const FileReport report = report_on(folder / "old.pt");
  ASSERT_EQ(report.values.size(), 2u);
  EXPECT_EQ(tree_text(report.values[1]), "2\n");
  EXPECT_THAT(report.facts, UnorderedElementsAre(Pair("values", ::testing::_), Pair("pickles", "2"),
                                                 Pair("behind them", "8 bytes not shown")));
}

struct ReportRefusal {
  std::string name;
  std::string contents;
  Code code;
  std::string message;
};

TEST(InspectFile, NamesWhatItCannotRead) {
  const std::vector<ReportRefusal> refusals = {
      {"empty", "", Code::kUnknownFormat, "empty: found"},
      {"empty.pkl", "", Code::kPickleCorrupt, "empty.pkl is empty"},
      {"text", "hello", Code::kUnknownFormat, "text: found unknown bytes"},
      {"x.gz", "\x1f\x8b\x08", Code::kUnknownFormat, "a gzip file"},
      {"lfs", "version https://git-lfs.github.com/spec/v1\n", Code::kUnknownFormat, "Git LFS"},
      {"__0_0.distcp", "PK\x03\x04", Code::kNotFound, "no .metadata lies beside it"},
      {"cut.pt", "PK\x03\x04", Code::kZipCorrupt, ""},
      {"cut.pkl", "\x80\x04", Code::kPickleCorrupt, ""},
      {"future.pkl", "\x80\x06.", Code::kPickleUnsupported, ""},
      {"bad", safetensors_file("{\"w\":1}", ""), Code::kSafetensorsCorrupt, ""},
  };
  for (const ReportRefusal& refusal : refusals) {
    const TemporaryFolder folder;
    folder.put(refusal.name, refusal.contents);
    const Result<FileReport> report = inspect_file(folder / refusal.name, {});
    ASSERT_FALSE(report) << refusal.name;
    EXPECT_EQ(report.error().code, refusal.code) << refusal.name << report.error().message;
    EXPECT_THAT(report.error().message, HasSubstr(refusal.message));
  }
  const TemporaryFolder folder;
  const Result<FileReport> missing = inspect_file(folder / "missing", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace shardwright::cli
