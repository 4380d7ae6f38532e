// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "remote/aws_settings.h"
#include "remote/http_client.h"
#include "remote/remote_store.h"

namespace shardwright {

/// `s3://bucket/prefix`, taken apart.
struct S3Path {
  std::string bucket;
  std::string prefix;  ///< without a slash at its end; "" for the whole bucket
};

/// Error: kUsage.
[[nodiscard]] Result<S3Path> parse_s3_path(std::string_view path);

/// The objects below a prefix of a bucket, at Amazon or at another server of its protocol. `shown`
/// is what the user calls it. Asks nothing yet. Error: kUsage for an endpoint that is no address or
/// a libcurl that can't sign.
[[nodiscard]] Result<std::unique_ptr<RemoteStore>> make_s3_store(std::shared_ptr<HttpClient> client,
                                                                 const AwsSettings& settings,
                                                                 const S3Path& path,
                                                                 std::string shown);

}  // namespace shardwright
