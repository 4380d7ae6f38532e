// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/code_group.h"

namespace shardwright {
namespace {

TEST(FailErrno, PicksTheCodeThatErrnoMeans) {
  const auto code_for = [](int os_errno) { return fail_errno(os_errno, "file").error().code; };
  EXPECT_EQ(code_for(ENOENT), Code::kNotFound);
  EXPECT_EQ(code_for(EROFS), Code::kPermission);
  EXPECT_EQ(code_for(ENOSPC), Code::kDiskFull);
  EXPECT_EQ(code_for(EDQUOT), Code::kDiskFull);
  EXPECT_EQ(code_for(EMFILE), Code::kTooManyFiles);
  EXPECT_EQ(code_for(EIO), Code::kIo);
}

TEST(FailErrno, SaysHowLimitsAreRaised) {
  EXPECT_NE(fail_errno(EMFILE, "file").error().message.find("(ulimit -Hn)"), std::string::npos);
  EXPECT_NE(fail_errno(EFBIG, "file").error().message.find("(ulimit -f)"), std::string::npos);
  EXPECT_EQ(fail_errno(EIO, "file").error().message.find("ulimit"), std::string::npos);
}

std::string within(const char* object, const char* message) {
  return Error{Code::kIo, message, 0}.within(object).message;
}

TEST(Within, PutsTheObjectInFront) {
  EXPECT_EQ(within("/x", "cannot read"), "/x: cannot read");
  EXPECT_EQ(within("/x", "tensor a: hole"), "/x: tensor a: hole");
  EXPECT_EQ(within("/x", "a.bin: cut"), "/x: a.bin: cut");
  EXPECT_EQ(within("/x", "/xy/a: cut"), "/x: /xy/a: cut");
  EXPECT_EQ(within("a.bin", "/x/data.bin: cut"), "a.bin: /x/data.bin: cut");
  EXPECT_EQ(within("/x", "tensor a: see /x/a.bin"), "/x: tensor a: see /x/a.bin");
}

TEST(Within, NamesNothingTwice) {
  EXPECT_EQ(within("/x", "/x/a.bin@7: cut"), "/x/a.bin@7: cut");
  EXPECT_EQ(within("/x", "/x: cut"), "/x: cut");
  EXPECT_EQ(within("/x/a.bin", "/x/a.bin@7: cut"), "/x/a.bin@7: cut");
  EXPECT_EQ(within("a.bin", "/x/a.bin@7: cut"), "/x/a.bin@7: cut");
  EXPECT_EQ(within("s/a.bin", "/x/s/a.bin: cut"), "/x/s/a.bin: cut");
  EXPECT_EQ(within("a.bin", "a.bin tensor w: hole"), "a.bin tensor w: hole");
  EXPECT_EQ(within("tensor w", "tensor w: hole"), "tensor w: hole");
}

TEST(CodeGroup, OfStorageOrWeightsEndsWhereDocumentsBegin) {
  for (const Code code : {Code::kNotFound, Code::kRemote, Code::kLimit, Code::kZipCorrupt,
                          Code::kTorchArchive, Code::kSafetensorsDtype}) {
    EXPECT_TRUE(is_of_storage_or_weights(code)) << code_name(code);
  }
  for (const Code code :
       {Code::kJsonCorrupt, Code::kTarCorrupt, Code::kUnknownFormat, Code::kHole, Code::kUsage}) {
    EXPECT_FALSE(is_of_storage_or_weights(code)) << code_name(code);
  }
}

TEST(CodeGroup, TellsDamageFromWhatIsNotConverted) {
  for (const Code code : {Code::kShortRead, Code::kSafetensorsCorrupt, Code::kHole,
                          Code::kShapeMismatch, Code::kModelIncomplete}) {
    EXPECT_EQ(group_of(code), CodeGroup::kContents) << code_name(code);
  }
  for (const Code code : {Code::kSafetensorsDtype, Code::kOptimizerUnsupported, Code::kNoFamily,
                          Code::kNotDivisible, Code::kLossySource}) {
    EXPECT_EQ(group_of(code), CodeGroup::kUnsupported) << code_name(code);
  }
  for (const Code code : {Code::kTargetExists, Code::kDiskSpace, Code::kUsage, Code::kCancelled}) {
    EXPECT_EQ(group_of(code), CodeGroup::kSurroundings) << code_name(code);
  }
}

}  // namespace
}  // namespace shardwright
