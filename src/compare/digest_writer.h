// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "exec/payload_digests.h"
#include "shardwright/plan.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Writes the file of digests (kDigestFile) of a target that was just written whole, and makes it
/// durable. `folder` is its path, `directory` the same; `digests` has what is known of its
/// payloads, the rest is read on `threads` threads. Where the files lie in an iteration's folder
/// the digests lie there and are of those in it. What is there of one is written anew. Errors:
/// those of reading and writing.
[[nodiscard]] Status write_digest_file(const Directory& directory, const std::string& folder,
                                       const Plan& plan, const PayloadDigests& digests,
                                       int threads);

/// Where that is, relative to the checkpoint's folder.
[[nodiscard]] std::string digest_file_path(const Plan& plan);

}  // namespace shardwright
