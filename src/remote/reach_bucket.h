// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "remote/s3_bucket.h"

namespace shardwright {

/// The bucket of `s3://bucket/prefix`, with the credentials of the environment. Asks nothing yet.
/// Errors: those of find_aws_settings, parse_s3_path and S3Bucket::make; kNotFound without libcurl.
[[nodiscard]] Result<std::unique_ptr<S3Bucket>> reach_bucket(const std::string& path);

}  // namespace shardwright
