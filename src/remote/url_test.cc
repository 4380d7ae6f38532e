// SPDX-License-Identifier: Apache-2.0
#include "remote/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Url, IsTakenApart) {
  const Url url = parse_url("HTTPS://Example.ORG:8443/A/b c?x=1&y=\"#part").value();
  EXPECT_EQ(url, (Url{"https", "example.org:8443", "/A/b%20c", "x=1&y=%22"}));
  EXPECT_EQ(url.origin(), "https://example.org:8443");
  EXPECT_EQ(url.text(), "https://example.org:8443/A/b%20c?x=1&y=%22");
  EXPECT_EQ(parse_url("http://[::1]:80").value(), (Url{"http", "[::1]:80", "/", ""}));
  EXPECT_EQ(parse_url("http://h?q").value(), (Url{"http", "h", "/", "q"}));
}

TEST(Url, RefusesWhatIsNoAddressAndRepeatsNoSecret) {
  for (const char* text :
       {"", "example.org/x", "ftp://h/x", "file:///etc/passwd", "https://", "https:///x",
        "https://a b/", "https://h\\x/", "https://user@h/x", "https://user:sEcReT@h/x?sEcReT"}) {
    const auto refused = parse_url(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kUsage) << text;
    EXPECT_THAT(refused.error().message, Not(HasSubstr("sEcReT")));
  }
}

TEST(Url, SaysWhereNamesAndPasswordsGo) {
  const auto refused = parse_url("https://user:sEcReT@h/x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("~/.netrc"));
}

TEST(Url, OfSecretsIsShownWithoutThem) {
  const std::array cases = {
      std::pair{"https://h/x?token=1", "https://h/x"},
      std::pair{"https://me:word@h/x#y", "https://h/x"},
      std::pair{"https://h/a@b", "https://h/a@b"},
      std::pair{"s3://bucket/a?b", "s3://bucket/a"},
      std::pair{"me:word", "me:word"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(shown_url(text), shown);
}

TEST(Scheme, IsTheSameInAnyCase) {
  EXPECT_EQ(with_lower_scheme("HTTPS://Host/X"), "https://Host/X");
  EXPECT_EQ(with_lower_scheme("S3://Bucket/X"), "s3://Bucket/X");
  EXPECT_EQ(with_lower_scheme("Runs/A"), "Runs/A");
  EXPECT_EQ(with_lower_scheme(""), "");
}

TEST(PercentEncoding, EscapesAllButWhatNeedsNone) {
  EXPECT_EQ(percent_encoded("aZ09-._~/ +%\xc3\xa9"), "aZ09-._~/%20%2B%25%C3%A9");
  EXPECT_EQ(percent_encoded("refs/pr/1", true), "refs%2Fpr%2F1");
}

TEST(PercentEncoding, IsUndone) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_decoded(percent_encoded(all, true)).value(), all);
  EXPECT_EQ(percent_decoded("%2f%2F+").value(), "//+");
  for (const char* text : {"%", "a%2", "%g0", "%0g", "%%41"}) {
    const auto refused = percent_decoded(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kUsage);
  }
}

}  // namespace
}  // namespace shardwright
