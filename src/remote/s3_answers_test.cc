// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shardwright {
namespace {

using testing::HasSubstr;

constexpr const char* kBegin = "<?xml version=\"1.0\"?>";

std::string upload_list(const std::string& inner) {
  return kBegin + ("<ListMultipartUploadsResult xmlns=\"http://s3/\">" + inner +
                   "</ListMultipartUploadsResult>");
}

TEST(S3Answers, ANewUploadHasAnId) {
  EXPECT_EQ(parse_new_upload("<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                             "<UploadId>a+b/=&amp;</UploadId></InitiateMultipartUploadResult>")
                .value(),
            "a+b/=&");
  for (const std::string& xml :
       {std::string("<InitiateMultipartUploadResult/>"),
        std::string("<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>"),
        std::string("<Error><UploadId>x</UploadId></Error>"), std::string(),
        "<InitiateMultipartUploadResult><UploadId>" + std::string(3000, 'x') +
            "</UploadId></InitiateMultipartUploadResult>"}) {
    const auto refused = parse_new_upload(xml);
    ASSERT_FALSE(refused) << xml;
    EXPECT_EQ(refused.error().code, Code::kRemote);
  }
}

// The status is 200 before S3 knows whether it can do it.
TEST(S3Answers, ACompletionMayBeAnError) {
  EXPECT_EQ(parse_completion("<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag>"
                             "</CompleteMultipartUploadResult>")
                .value()
                .error,
            "");
  const S3Completion failed =
      parse_completion(
          " \n<?xml "
          "version=\"1.0\"?><Error><Code>InternalError</Code><Message>again</Message></Error>")
          .value();
  EXPECT_EQ(failed.error, "InternalError");
  EXPECT_EQ(failed.reason, "again");
  for (const char* xml : {"", "   ", "<Error/>", "<Error><Message>m</Message></Error>", "<other/>",
                          "<CompleteMultipartUploadResult>"}) {
    const auto refused = parse_completion(xml);
    ASSERT_FALSE(refused) << xml;
    EXPECT_EQ(refused.error().code, Code::kRemote);
  }
}

TEST(S3Answers, UploadsComeInPages) {
  const std::string upload =
      "<Upload><Key>a b</Key><UploadId>1</UploadId><Initiator><ID>x</ID></Initiator>"
      "<Initiated>2026-01-02T03:04:05.000Z</Initiated></Upload>"
      "<Upload><Key>c</Key><UploadId>2</UploadId></Upload>";
  const std::string next =
      "<NextKeyMarker>c</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker>";
  const S3UploadList last =
      parse_upload_list(upload_list(next + "<IsTruncated>false</IsTruncated>" + upload)).value();
  ASSERT_EQ(last.uploads.size(), 2U);
  EXPECT_EQ(last.uploads[0].key, "a b");
  EXPECT_EQ(last.uploads[0].id, "1");
  EXPECT_EQ(last.uploads[0].begun, "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(last.uploads[1].begun, "");
  EXPECT_EQ(last.next_key, "");
  const S3UploadList first =
      parse_upload_list(upload_list(next + "<IsTruncated>true</IsTruncated>" + upload)).value();
  EXPECT_EQ(first.next_key, "c");
  EXPECT_EQ(first.next_id, "2");
  EXPECT_THAT(parse_upload_list(upload_list("<IsTruncated>true</IsTruncated>")).error().message,
              HasSubstr("where they begin"));
  EXPECT_THAT(parse_upload_list("<Error/>").error().message, HasSubstr("no list of uploads"));
}

}  // namespace
}  // namespace shardwright
