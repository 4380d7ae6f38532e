// SPDX-License-Identifier: Apache-2.0
// Checkpoints of torch archives of which one payload byte is another than it was when its CRC-32
// was written: no command takes it for the model's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "convert/golden.h"
#include "dcp/torch_items.h"
#include "io/source_files.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Source {
  const char* name;
  std::string_view format;
  std::int64_t tensor;
  std::int64_t pipeline;
};

class AlteredPayloads : public testing::TestWithParam<Source> {
 protected:
  void SetUp() override {
    ConvertRequest request = to(GetParam().format, golden_path("hf/llama3/hf"), "in");
    request.parallel.tensor = GetParam().tensor;
    request.parallel.pipeline = GetParam().pipeline;
    const auto made = convert_now(request);
    ASSERT_TRUE(made) << made.error().text();
  }

  [[nodiscard]] ConvertRequest to(std::string_view format, const std::string& input,
                                  const std::string& name) const {
    ConvertRequest request;
    request.input = input;
    request.output = place_ / name;
    request.format = format;
    request.overwrite = true;
    return request;
  }

  // Inverts a bit of the last byte of every so many-th chunk's payload, and does `body` with each.
  template <class Body>
  void with_each_altered(Body body) {
    Checkpoint checkpoint = open_checkpoint(place_ / "in").value();
    ASSERT_TRUE(locate_items(checkpoint.catalog, *checkpoint.files));
    std::size_t number = 0;
    std::size_t done = 0;
    for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
      for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
        const ByteRange range = tensor.chunks.range(c);
        if (range.length == 0 || number++ % 5 != 0) continue;
        const std::string path =
            checkpoint.location.path + "/" + checkpoint.catalog.files[tensor.chunks.file(c)];
        const auto position = static_cast<std::streamoff>(range.offset + range.length - 1);
        flip(path, position);
        body(tensor.desc.name, fs::path(path).filename().string());
        flip(path, position);
        ++done;
      }
    }
    EXPECT_GE(done, 5u);
  }

  static void flip(const std::string& path, std::streamoff position) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(position);
    const int byte = file.get();
    file.seekp(position);
    file.put(static_cast<char>(byte ^ 0x10));
    ASSERT_TRUE(file);
  }

  TemporaryFolder place_;
};

TEST_P(AlteredPayloads, AreFoundByAConversionToEachFormat) {
  for (const std::string_view format : {"hf", "torch_dist", "legacy", "safetensors"}) {
    const ConvertRequest request = to(format, place_ / "in", "out");
    ASSERT_TRUE(convert_now(request));
    fs::remove_all(place_ / "out");
    with_each_altered([&](const std::string& tensor, const std::string& file) {
      const auto converted = convert_now(request);
      ASSERT_FALSE(converted) << tensor;
      EXPECT_EQ(converted.error().code, Code::kPayloadDamaged) << converted.error().text();
      EXPECT_THAT(converted.error().message, AllOf(HasSubstr(file), HasSubstr("record '")));
      EXPECT_FALSE(fs::exists(place_ / "out")) << tensor;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AlteredPayloads,
                         testing::Values(Source{"TorchDist", "torch_dist", 2, 2},
                                         Source{"Legacy", "legacy", 1, 1},
                                         Source{"LegacyRanks", "legacy", 2, 1}),
                         [](const auto& test) { return std::string(test.param.name); });

// Flat buffers that lie in an entry of their own, as `dp_zero_gather_scatter` saves them.
TEST(AlteredBuffers, AreFoundByAConversionToEachFormat) {
  const TemporaryFolder place;
  fs::copy(golden_path("mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero"), place / "in",
           fs::copy_options::recursive);
  const std::string file = place / "in/iter_0000010/__0_1.distcp";
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  for (const std::string_view format : {"torch_dist", "legacy", "fsdp_dtensor", "dcp"}) {
    ConvertRequest request;
    request.input = place / "in";
    request.output = place / "out";
    request.format = format;
    const auto converted = convert_now(request);
    ASSERT_FALSE(converted) << format;
    EXPECT_EQ(converted.error().code, Code::kPayloadDamaged) << converted.error().text();
    EXPECT_THAT(converted.error().message, HasSubstr("param_state/shard_0_1"));
    EXPECT_FALSE(fs::exists(place / "out")) << format;
  }
}

TEST(ChangedSource, IsNotPublished) {
  const TemporaryFolder place;
  fs::copy(golden_path("hf/llama3/hf"), place / "in", fs::copy_options::recursive);
  const fs::path weights = place.path() / "in" / "model.safetensors";
  fs::permissions(weights, fs::perms::owner_write, fs::perm_options::add);
  ConvertRequest request;
  request.input = place / "in";
  request.output = place / "out";
  request.format = "torch_dist";
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  const auto time = fs::last_write_time(weights);
  fs::last_write_time(weights, time + std::chrono::seconds(2));
  const auto report = run_conversion(*prepared, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kSourceChanged);
  EXPECT_THAT(report.error().message, HasSubstr("model.safetensors: changed while it was read"));
  EXPECT_EQ(place.tree().find("out"), std::string::npos);
  const auto again = prepare_conversion(request);
  ASSERT_TRUE(again);
  EXPECT_TRUE(run_conversion(*again, {}));
}

}  // namespace
}  // namespace shardwright
