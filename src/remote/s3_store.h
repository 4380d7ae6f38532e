// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "remote/remote_store.h"
#include "remote/s3_bucket.h"

namespace shardwright {

/// The objects below a prefix of a bucket. Asks nothing yet.
[[nodiscard]] std::unique_ptr<RemoteStore> make_s3_store(std::unique_ptr<S3Bucket> bucket);

}  // namespace shardwright
