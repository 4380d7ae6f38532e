// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// Who asks an S3 server, and where it is.
struct AwsSettings {
  std::string key_id;  ///< "": nobody in particular, requests are not signed
  std::string secret;
  std::string session_token;
  std::string region;    ///< "": us-east-1, or what the server says
  std::string endpoint;  ///< a URL; "": Amazon's
};

using Variables = std::function<std::optional<std::string>(const char*)>;

/// As Amazon's own tools find them: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
/// AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, and for what those leave
/// out the profile $AWS_PROFILE (else `default`) of ~/.aws/credentials and ~/.aws/config, or of
/// the files that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name. Errors: kUsage for a
/// profile that is in neither file, and those of reading.
[[nodiscard]] Result<AwsSettings> find_aws_settings(const Variables& variables);

/// The settings of one section of such a file; nullopt where it has none of that name.
[[nodiscard]] std::optional<std::map<std::string, std::string>> profile_in(
    std::string_view text, std::string_view section);

}  // namespace shardwright
