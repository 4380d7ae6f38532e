// SPDX-License-Identifier: Apache-2.0
#include "codec/stand_in.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codec/json_text.h"
#include "codec/safetensors_header.h"
#include "codec/torch_archive.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  std::string bytes;
  const char* what;
  const char* remedy;
};

// What any reader may meet.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"", "is empty", "download"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n",
       "a Git LFS pointer", "git lfs pull"},
      {"\xef\xbb\xbf\n <!DOCTYPE HTML><html>", "a web page (HTML)", "download"},
      {"<HTML lang=en>", "a web page (HTML)", "download"},
      {"<?xml version=\"1.0\"?><Error>", "an XML document", "download"},
      {"<Error><Code>AccessDenied</Code>", "an error message in XML", "download"},
      {std::string(4096, '\0'), "zero bytes, as an unfinished download", "download"},
  };
  return all;
}

TEST(StandIn, EveryReaderNamesIt) {
  for (const Case& given : cases()) {
    const auto file = make_memory_file("a/model", given.bytes);
    const auto safetensors = read_safetensors_header(*file);
    ASSERT_FALSE(safetensors) << given.what;
    EXPECT_EQ(safetensors.error().code, Code::kSafetensorsCorrupt);
    const auto torch = TorchArchive::open(*file);
    ASSERT_FALSE(torch) << given.what;
    const auto json = parse_json(given.bytes, "a/model");
    ASSERT_FALSE(json) << given.what;
    EXPECT_EQ(json.error().code, Code::kJsonCorrupt);
    for (const Error& error : {safetensors.error(), torch.error(), json.error()}) {
      EXPECT_THAT(error.message, HasSubstr(given.what));
      EXPECT_THAT(error.message, HasSubstr(given.remedy));
      EXPECT_THAT(error.message, ::testing::StartsWith("a/model: "));
      EXPECT_THAT(error.message, Not(HasSubstr("\n")));
    }
  }
}

TEST(StandIn, WordsAreNoWeightsButMayBeText) {
  const std::string words = "Entry not found\nmore";
  const auto file = make_memory_file("w", words);
  const Status binary = refuse_stand_in(Code::kIo, *file, "weights", Contents::kBinary);
  ASSERT_FALSE(binary);
  EXPECT_THAT(binary.error().message, HasSubstr("this is text, not weights: \"Entry not found\""));
  EXPECT_TRUE(refuse_stand_in(Code::kIo, *file, "words", Contents::kText));
}

TEST(StandIn, RealFilesPass) {
  for (const std::string& bytes : {"PK\x03\x04"s, "\x80\x02]."s, "\x08\0\0\0\0\0\0\0{}      "s,
                                   std::string(4, '\0'), std::string(600, '\0') + "x"}) {
    const auto file = make_memory_file("w", bytes);
    const bool has_data = bytes.size() < 512;
    EXPECT_EQ(refuse_stand_in(Code::kIo, *file, "weights", Contents::kBinary).has_value(),
              has_data);
  }
  for (const char* text : {"{}", "[1]", "a: 1", "< 3", "version: 2"}) {
    EXPECT_TRUE(refuse_stand_in(Code::kIo, "x", text, "text", Contents::kText)) << text;
  }
}

}  // namespace
}  // namespace shardwright
