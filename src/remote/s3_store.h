// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "remote/remote_store.h"
#include "remote/s3_bucket.h"

namespace shardwright {

/// The objects below a prefix of a bucket. Asks nothing yet.
[[nodiscard]] std::unique_ptr<RemoteStore> make_s3_store(std::unique_ptr<S3Bucket> bucket);

/// What lies in a folder below the prefix, in the server's order; nothing where no object's name
/// begins so. `on_object` may be empty; it is told names in the folder. Errors: kNotFound (the
/// bucket), kPermission, kRemote, kLimit.
[[nodiscard]] Result<std::vector<DirectoryEntry>> list_s3_folder(
    const S3Bucket& bucket, std::string_view folder,
    const std::function<void(const std::string& name, RemoteObject object)>& on_object);

}  // namespace shardwright
