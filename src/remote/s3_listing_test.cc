// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string listing_of(const std::string& inner) {
  return "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/\">" +
         inner + "</ListBucketResult>";
}

TEST(S3Listing, HasObjectsAndFolders) {
  const S3Listing found =
      parse_s3_listing(
          listing_of(
              "<Prefix>not/this</Prefix><Contents><Key>a b+c%20</Key><Size>12</Size>"
              "<ETag>&quot;t&quot;</ETag><Owner><Key>x</Key><Size>9</Size></Owner></Contents>"
              "<Contents><Key>d</Key><Size>0</Size></Contents>"
              "<CommonPrefixes><Prefix>e/</Prefix></CommonPrefixes>"))
          .value();
  ASSERT_EQ(found.objects.size(), 2U);
  EXPECT_EQ(found.objects[0].key, "a b+c%20");
  EXPECT_EQ(found.objects[0].size, 12U);
  EXPECT_EQ(found.objects[0].tag, "\"t\"");
  EXPECT_EQ(found.objects[1].key, "d");
  EXPECT_EQ(found.objects[1].tag, "");
  EXPECT_THAT(found.folders, ElementsAre("e/"));
  EXPECT_EQ(found.next, "");
}

TEST(S3Listing, IsDecodedWhereItSaysSo) {
  const S3Listing found =
      parse_s3_listing(listing_of("<EncodingType>url</EncodingType>"
                                  "<Contents><Key>a+b%2Bc%C3%A9</Key><Size>1</Size></Contents>"
                                  "<CommonPrefixes><Prefix>e+f/</Prefix></CommonPrefixes>"))
          .value();
  EXPECT_EQ(found.objects[0].key, "a b+c\xc3\xa9");
  EXPECT_THAT(found.folders, ElementsAre("e f/"));
}

TEST(S3Listing, NamesThePageBehindItOnlyWhereThereIsOne) {
  const std::string next = "<NextContinuationToken>T</NextContinuationToken>";
  EXPECT_EQ(parse_s3_listing(listing_of(next + "<IsTruncated>true</IsTruncated>")).value().next,
            "T");
  EXPECT_EQ(parse_s3_listing(listing_of(next + "<IsTruncated>false</IsTruncated>")).value().next,
            "");
}

TEST(S3Listing, RefusesWhatIsNone) {
  std::string deep;
  for (int i = 0; i < 20; ++i) deep += "<d>";
  for (int i = 0; i < 20; ++i) deep += "</d>";
  const std::pair<std::string, std::string> cases[] = {
      {"", "no XML"},
      {"{}", "no XML"},
      {"<ListBucketResult>", "no XML"},
      {"<Error><Code>x</Code></Error>", "no listing"},
      {listing_of("<IsTruncated>true</IsTruncated>"), "more pages"},
      {listing_of("<Contents><Key>a</Key><Size>-1</Size></Contents>"), "where a size belongs"},
      {listing_of("<Contents><Key>a</Key><Size>1x</Size></Contents>"), "where a size belongs"},
      {listing_of("<Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>"),
       "where a size belongs"},
      {listing_of(deep), "nested too deep"},
      {listing_of("<Contents><Key>" + std::string(9000, 'k') + "</Key></Contents>"), "too long"},
      {listing_of("<EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>"),
       "two hexadecimal digits"},
  };
  for (const auto& [xml, why] : cases) {
    const auto refused = parse_s3_listing(xml);
    ASSERT_FALSE(refused) << why;
    EXPECT_THAT(refused.error().message, HasSubstr(why));
  }
  // An entity that grows with each step is no file of ours: expat refuses or bounds it.
  const auto bomb = parse_s3_listing(
      "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">"
      "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d "
      "\"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]>"
      "<ListBucketResult><Contents><Key>&d;</Key></Contents></ListBucketResult>");
  EXPECT_FALSE(bomb);
}

}  // namespace
}  // namespace shardwright
