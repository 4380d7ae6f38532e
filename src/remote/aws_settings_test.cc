// SPDX-License-Identifier: Apache-2.0
#include "remote/aws_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using Environment = std::map<std::string, std::string>;

Variables variables_of(Environment environment) {
  return [environment = std::move(environment)](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
}

constexpr const char* kCredentials =
    "[default]\naws_access_key_id=D\naws_secret_access_key=DS\naws_session_token=DT\n"
    "[lab]\naws_access_key_id = L\naws_secret_access_key = LS=\naws_session_token = LT\n";
constexpr const char* kConfig =
    "[default]\nregion = here\n[profile lab]\nregion = there\nendpoint_url = https://lab\n";

TEST(AwsProfile, IsTheSectionOfItsName) {
  const auto found = profile_in(
      "a = outside\n\n[ one ]\r\nkey = v = w \r\n# key = x\n; key = y\nnested =\n  key = inner\n"
      "\tkey = inner\nnothing\n[two]\nkey = z\n[one]\nmore=1",
      "one");
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, testing::ElementsAre(testing::Pair("key", "v = w"),
                                           testing::Pair("more", "1"), testing::Pair("nested", ""),
                                           testing::Pair("nested.key", "inner")));
  // As Python's configparser reads it.
  EXPECT_THAT(*profile_in("\xEF\xBB\xBF[one]\nKEY: v=w\nOther=a:b\n", "one"),
              testing::ElementsAre(testing::Pair("key", "v=w"), testing::Pair("other", "a:b")));
  EXPECT_FALSE(profile_in("[one]\nkey=1\n", "on"));
  EXPECT_FALSE(profile_in("", "one"));
  EXPECT_TRUE(profile_in("[one", "one"));
}

TEST(AwsSettings, OfVariablesComeBeforeThoseOfFiles) {
  const TemporaryFolder home;
  home.put(".aws/credentials", kCredentials);
  home.put(".aws/config", kConfig);
  const AwsSettings own = find_aws_settings(variables_of({{"HOME", home.path()},
                                                          {"AWS_ACCESS_KEY_ID", "V"},
                                                          {"AWS_SECRET_ACCESS_KEY", "VS"},
                                                          {"AWS_DEFAULT_REGION", "fallback"},
                                                          {"AWS_ENDPOINT_URL", "https://all"},
                                                          {"AWS_ENDPOINT_URL_S3", "https://s3"}}))
                              .value();
  EXPECT_EQ(own.key_id, "V");
  EXPECT_EQ(own.secret, "VS");
  EXPECT_EQ(own.session_token, "");  // the profile's belongs to another key
  EXPECT_EQ(own.region, "fallback");
  EXPECT_EQ(own.endpoint, "https://s3");
}

TEST(AwsSettings, OfAProfileAreTakenTogether) {
  const TemporaryFolder home;
  home.put(".aws/credentials", kCredentials);
  home.put(".aws/config", kConfig);
  Environment environment = {{"HOME", home.path()}};
  const AwsSettings plain = find_aws_settings(variables_of(environment)).value();
  EXPECT_EQ(plain.key_id + plain.secret + plain.session_token, "DDSDT");
  EXPECT_EQ(plain.region, "here");
  EXPECT_EQ(plain.endpoint, "");
  environment["AWS_PROFILE"] = "lab";
  environment["AWS_ACCESS_KEY_ID"] = "half";  // without its secret it is none
  environment["AWS_REGION"] = "mine";
  const AwsSettings lab = find_aws_settings(variables_of(environment)).value();
  EXPECT_EQ(lab.key_id, "L");
  EXPECT_EQ(lab.secret, "LS=");
  EXPECT_EQ(lab.session_token, "LT");
  EXPECT_EQ(lab.region, "mine");
  EXPECT_EQ(lab.endpoint, "https://lab");
}

TEST(AwsSettings, AreNobodysWhereNothingSaysWho) {
  const TemporaryFolder home;
  const AwsSettings none = find_aws_settings(variables_of({{"HOME", home.path()}})).value();
  EXPECT_EQ(none.key_id + none.secret + none.region + none.endpoint, "");
  EXPECT_TRUE(find_aws_settings(variables_of({})));
  const auto refused =
      find_aws_settings(variables_of({{"HOME", home.path()}, {"AWS_PROFILE", "lab"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("no profile 'lab'"));
}

TEST(AwsSettings, MayNameAnEndpointOfTheService) {
  const TemporaryFolder home;
  home.put(".aws/credentials",
           "[default]\nAWS_ACCESS_KEY_ID=D\naws_secret_access_key: DS\naws_security_token=DT\n");
  home.put(".aws/config",
           "[default]\nservices = own\nendpoint_url = https://all\n[services own]\n"
           "sts =\n  endpoint_url = https://sts\ns3 =\n  endpoint_url = https://s3\n");
  const AwsSettings settings = find_aws_settings(variables_of({{"HOME", home.path()}})).value();
  EXPECT_EQ(settings.key_id + settings.secret + settings.session_token, "DDSDT");
  EXPECT_EQ(settings.endpoint, "https://s3");
}

TEST(AwsSettings, MayLieInOtherFiles) {
  const TemporaryFolder folder;
  folder.put("who", "[default]\naws_access_key_id=F\naws_secret_access_key=FS\n");
  folder.put("where", "[default]\nregion=far\n");
  const AwsSettings settings =
      find_aws_settings(variables_of({{"HOME", "/nowhere"},
                                      {"AWS_SHARED_CREDENTIALS_FILE", folder / "who"},
                                      {"AWS_CONFIG_FILE", folder / "where"}}))
          .value();
  EXPECT_EQ(settings.key_id, "F");
  EXPECT_EQ(settings.region, "far");
}

}  // namespace
}  // namespace shardwright
