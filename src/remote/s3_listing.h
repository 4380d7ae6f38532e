// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// A page of what ListObjectsV2 answers.
struct S3Listing {
  struct Object {
    std::string key;
    std::uint64_t size = 0;
    std::string tag;  ///< ETag, with its quotes
  };
  std::vector<Object> objects;
  std::vector<std::string> folders;  ///< CommonPrefixes, each with its slash
  std::string next;                  ///< of the page behind it; "" for the last one
};

/// Keys are decoded where the listing says that they are encoded. Error: kRemote.
[[nodiscard]] Result<S3Listing> parse_s3_listing(std::string_view xml);

}  // namespace shardwright
