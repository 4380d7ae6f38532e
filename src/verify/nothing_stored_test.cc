// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>

#include "verify/planted_fixture.h"

// Checkpoints without any data: whatever their index says, nothing is proven, equal or done.

namespace shardwright {
namespace {

using testing::IsEmpty;

struct Empty {
  const char* name;
  void (*make)(const Planted&);
};

void PrintTo(const Empty& empty, std::ostream* out) { *out << empty.name; }

DcpMetadata metadata_of(const std::string& golden) {
  const auto directory = open_local_directory(golden_path(golden)).value();
  return read_dcp_metadata(*directory->open(".metadata").value()).value();
}

constexpr Empty kEmptyCases[] = {
    {"IndexOfNothing",
     [](const Planted& p) { p.put("model.safetensors.index.json", R"({"weight_map":{}})"); }},
    {"SafetensorsWithoutTensors",
     [](const Planted& p) { p.put_header("model.safetensors", "{}", ""); }},
    {"TensorsWithoutElements",
     [](const Planted& p) {
       p.put_header("model.safetensors",
                    R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})", "");
     }},
    {"MetadataOfNothing",
     [](const Planted& p) { p.put(".metadata", encode_dcp_metadata(Catalog{}).value()); }},
    {"ObjectsAlone",
     [](const Planted& p) {
       Planted::copy("dcp/optimizer/ckpt", p);
       Catalog catalog = metadata_of("dcp/optimizer/ckpt").catalog;
       ASSERT_FALSE(catalog.objects.empty());
       catalog.tensors.clear();
       p.put(".metadata", encode_dcp_metadata(catalog).value());
     }},
};

class NothingStored : public testing::TestWithParam<Empty> {
 protected:
  void SetUp() override { GetParam().make(planted_); }
  Planted planted_;
};

TEST_P(NothingStored, IsNotProven) {
  const auto report = verify_checkpoint(planted_.path(), {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->has_errors());
  std::vector<Code> codes;
  for (const VerifyFinding& finding : report->findings) codes.push_back(finding.code);
  EXPECT_THAT(codes, testing::Contains(Code::kNothingStored));
  for (const Phrase& proven : report->proven) {
    EXPECT_EQ(proven.english.find("elements"), std::string::npos) << proven.english;
  }
}

TEST_P(NothingStored, IsEqualToNothing) {
  const auto diff = diff_checkpoints(planted_.path(), planted_.path(), {}, std::nullopt);
  ASSERT_FALSE(diff) << "equal: " << diff->equal();
  EXPECT_EQ(diff.error().code, Code::kNothingStored);
  const auto hash = hash_checkpoint(planted_.path(), {});
  ASSERT_FALSE(hash);
  EXPECT_EQ(hash.error().code, Code::kNothingStored);
}

TEST_P(NothingStored, IsNotConverted) {
  for (const std::string_view format : {"safetensors", "dcp", "hf"}) {
    ConvertRequest request;
    request.input = planted_.path();
    request.output = planted_.place() / "out";
    request.format = format;
    const auto done = convert_now(request);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kNothingStored) << done.error().text();
    EXPECT_FALSE(std::filesystem::exists(request.output));
  }
}

INSTANTIATE_TEST_SUITE_P(All, NothingStored, testing::ValuesIn(kEmptyCases),
                         [](const auto& test) { return std::string(test.param.name); });

// A partial download: the name is there, and nothing behind it.
TEST(NothingStoredMetadata, ThatIsADanglingLinkIsAnErrorOfItsOwn) {
  const Planted planted;
  std::filesystem::create_directories(planted.path());
  std::filesystem::create_symlink("nowhere", planted.path() + "/.metadata");
  const auto report = verify_checkpoint(planted.path(), {});
  if (report) {
    EXPECT_TRUE(report->has_errors());
    EXPECT_THAT(report->proven, IsEmpty());
  }
  EXPECT_FALSE(open_checkpoint(planted.path()));
  EXPECT_FALSE(diff_checkpoints(planted.path(), planted.path(), {}, std::nullopt));
}

TEST(Unloadable, StridedShardsThatTorchDescribedWrongAreNamed) {
  const auto report = verify_checkpoint(golden_path("dcp/strided_rows7/ckpt"), {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_FALSE(report->has_errors());
  std::vector<std::string> messages;
  for (const VerifyFinding& finding : report->findings) {
    if (finding.code == Code::kUnloadable) messages.push_back(finding.message);
  }
  ASSERT_FALSE(messages.empty());
  EXPECT_THAT(messages, testing::Each(testing::AllOf(testing::StartsWith("tensor "),
                                                     testing::HasSubstr("torch 2.12 and 2.13"),
                                                     testing::HasSubstr("a converted copy"))));
  // What an older torch wrote right has no such finding.
  const auto right = verify_checkpoint(golden_path("dcp/fsdp2_tp2_uneven/ckpt"), {});
  ASSERT_TRUE(right);
  EXPECT_THAT(right->findings, IsEmpty());
}

// torch's SerializationFormat.SAFETENSORS, which its own reader cannot load.
TEST(Unloadable, SafetensorsItemsAreSoundButUnguarded) {
  const auto report = verify_checkpoint(golden_path("dcp/safetensors_items/ckpt"), {});
  ASSERT_TRUE(report) << report.error().text();
  ASSERT_EQ(report->findings.size(), 1u) << report->findings.back().message;
  EXPECT_EQ(report->findings.front().code, Code::kUnloadable);
  EXPECT_THAT(report->findings.front().message, testing::HasSubstr("safetensors file inside"));
  EXPECT_GT(report->payloads_unguarded, 0u);
  EXPECT_GT(report->elements, 0u);
}

}  // namespace
}  // namespace shardwright
