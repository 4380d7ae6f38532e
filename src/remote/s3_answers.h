// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// What S3 answers about uploads in parts. Errors: kRemote for what is no such answer.

/// The id of a new upload.
[[nodiscard]] Result<std::string> parse_new_upload(std::string_view xml);

/// What came of putting an upload's parts together, which S3 may begin to answer before it knows.
struct S3Completion {
  std::string error;   ///< its code, such as `InternalError`; "" where the object is there now
  std::string reason;  ///< what the server says of that
};
[[nodiscard]] Result<S3Completion> parse_completion(std::string_view xml);

/// An upload that is not finished. Nobody sees it in the bucket, but it is paid for.
struct S3Upload {
  std::string key;
  std::string id;
  std::string begun;  ///< when, as the server writes it
};

/// A page of them.
struct S3UploadList {
  std::vector<S3Upload> uploads;
  std::string next_key;  ///< with `next_id`, where the page behind it begins; "" for the last one
  std::string next_id;
};
[[nodiscard]] Result<S3UploadList> parse_upload_list(std::string_view xml);

}  // namespace shardwright
