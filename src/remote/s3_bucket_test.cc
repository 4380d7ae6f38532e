// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_bucket.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(S3Path, IsABucketAndAPrefix) {
  const auto parts_of = [](std::string_view path) {
    const S3Path found = parse_s3_path(path).value();
    return found.bucket + " " + found.prefix;
  };
  EXPECT_EQ(parts_of("s3://bucket"), "bucket ");
  EXPECT_EQ(parts_of("s3://bucket/"), "bucket ");
  EXPECT_EQ(parts_of("s3://my.bucket-1/a b/c//"), "my.bucket-1 a b/c");
}

TEST(S3Path, RefusesWhatNamesNoFolder) {
  for (const char* path : {"s3://", "s3:///a", "s3://b?x/a", "s3://b@c/a", "s3://bucket/../a",
                           "s3://bucket/a/./b", "s3://bucket/a//b", "s3://xy/a"}) {
    const auto refused = parse_s3_path(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, Code::kUsage) << path;
  }
}

}  // namespace
}  // namespace shardwright
