// SPDX-License-Identifier: Apache-2.0
// Whole conversions of real files while something goes wrong: calls that fail, files that are cut
// or altered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "convert/golden.h"
#include "exec/execute.h"
#include "io/faulty_directory.h"
#include "io/memory_directory.h"
#include "io/publish.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

ConvertRequest import_of(const std::string& input, const std::string& output) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "torch_dist";
  request.parallel.tensor = 2;
  request.parallel.pipeline = 2;
  return request;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    names.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status convert_with_fault(const PreparedConversion& prepared, Fault fault, std::uint64_t nth,
                          bool& fired) {
  PublishOptions options;
  options.target = prepared.request.output;
  options.sources = {prepared.request.input};
  options.may_replace = [](const std::string&) -> Result<Replace> { return Replace::kWhole; };
  const std::unique_ptr<Publication> publication = SW_TRY(Publication::begin(std::move(options)));
  FaultyDirectory target(publication->directory(), fault, nth);
  const auto report = execute(prepared.plan, *prepared.source.files, target, ExecuteOptions{});
  fired = target.fired();
  if (!report) return std::unexpected(report.error());
  return publication->commit();
}

class FailingCalls : public testing::TestWithParam<Fault> {};

// Any call on the target may fail: the old target stays as it was and nothing lies beside it.
TEST_P(FailingCalls, OnTheTargetLeaveTheOldOneInPlace) {
  const TemporaryFolder place;
  const std::string out = place / "out";
  fs::create_directory(out);
  std::ofstream(out + "/old") << "old";
  const auto prepared = prepare_conversion(import_of(golden_path("hf/llama3/hf"), out));
  ASSERT_TRUE(prepared) << prepared.error().text();
  const std::vector<std::string> before = names_in(place / "");
  std::uint64_t nth = 1;
  for (bool fired = true;; ++nth) {
    const Status status = convert_with_fault(*prepared, GetParam(), nth, fired);
    if (!fired) {
      ASSERT_TRUE(status) << status.error().text();
      break;
    }
    ASSERT_FALSE(status) << "call " << nth << " failed and nobody noticed";
    ASSERT_EQ(names_in(place / ""), before) << "call " << nth;
  }
  EXPECT_GT(nth, 50u) << "the faults must have met real work";
  EXPECT_FALSE(fs::exists(out + "/old"));
  const TensorMap expected = read_all_tensors(golden_path("hf/llama3")).value();
  const TensorMap written = read_all_tensors(out).value();
  ASSERT_EQ(written.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_EQ(written.at(name).bytes, tensor.bytes);
}

std::string fault_name(const testing::TestParamInfo<Fault>& test) {
  switch (test.param) {
    case Fault::kError:
      return "Error";
    case Fault::kShorten:
      return "Shorten";
    case Fault::kNoSpace:
      return "NoSpace";
  }
  return "Unknown";
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingCalls,
                         testing::Values(Fault::kError, Fault::kShorten, Fault::kNoSpace),
                         fault_name);

TEST(FailingReads, AreNeverTakenForData) {
  const TemporaryFolder place;
  const auto prepared =
      prepare_conversion(import_of(golden_path("hf/llama3/hf"), place / "unused"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  for (const Fault fault : {Fault::kError, Fault::kShorten}) {
    std::uint64_t nth = 1;
    for (bool fired = true; fired; ++nth) {
      FaultyDirectory source(*prepared->source.directory, fault, nth);
      SourceFiles files(source, prepared->plan.source.files, 10);
      MemoryDirectory target("memory");
      const auto report = execute(prepared->plan, files, target, ExecuteOptions{});
      fired = source.fired();
      ASSERT_EQ(report.has_value(), !fired) << "read " << nth;
    }
    EXPECT_GT(nth, 10u);
  }
}

struct Damaged {
  const char* golden;
  const char* file;  // relative to it
};

class DamagedFiles : public testing::TestWithParam<Damaged> {
 protected:
  // The golden checkpoint as safetensors after `bytes` took the place of one file.
  Result<TensorMap> read_with(const std::string& bytes) {
    const std::string copy = place_ / "copy";
    if (!fs::exists(copy)) {
      fs::copy(golden_path(GetParam().golden), copy, fs::copy_options::recursive);
    }
    std::ofstream(copy + "/" + GetParam().file, std::ios::binary | std::ios::trunc) << bytes;
    ConvertRequest request;
    request.input = copy;
    request.output = place_ / "out";
    request.format = "safetensors";
    request.overwrite = true;
    SW_TRY(convert_now(request));
    return read_all_tensors(place_ / "out");
  }

  static std::string original_bytes() {
    std::ifstream file(golden_path(std::string(GetParam().golden) + "/" + GetParam().file),
                       std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder place_;
};

bool same_tensors(const TensorMap& a, const TensorMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype == y.second.dtype &&
           x.second.shape == y.second.shape && x.second.bytes == y.second.bytes;
  });
}

TEST_P(DamagedFiles, AreRefusedWhereverTheyEnd) {
  const std::string bytes = original_bytes();
  const TensorMap original = read_with(bytes).value();
  const std::size_t step = std::max<std::size_t>(bytes.size() / 61, 1);
  for (std::size_t length = 0; length < bytes.size(); length += step) {
    const auto read = read_with(bytes.substr(0, length));
    ASSERT_TRUE(!read || same_tensors(*read, original)) << "cut to " << length << " bytes";
  }
  const auto short_by_one = read_with(bytes.substr(0, bytes.size() - 1));
  EXPECT_TRUE(!short_by_one || same_tensors(*short_by_one, original));
  EXPECT_FALSE(read_with("")) << "an empty file holds nothing";
}

std::string damaged_name(const testing::TestParamInfo<Damaged>& test) {
  std::string name = fs::path(test.param.file).filename().string();
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, DamagedFiles,
                         testing::Values(Damaged{"hf/llama3/hf", "model.safetensors"},
                                         Damaged{"mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero",
                                                 "iter_0000010/.metadata"},
                                         Damaged{"mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero",
                                                 "iter_0000010/__0_0.distcp"},
                                         Damaged{"mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero",
                                                 "iter_0000010/common.pt"}),
                         damaged_name);

}  // namespace
}  // namespace shardwright
