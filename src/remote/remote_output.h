// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// New files below `s3://BUCKET/PREFIX`. What is written is sent away in parts as soon as a part is
/// whole, in any order; until then it lies in files without a name in $TMPDIR, which a killed
/// process leaves nothing of. Nobody sees a file before show().
class RemoteOutput {
 public:
  virtual ~RemoteOutput() = default;
  /// Makes files and nothing else. A file's sync() sends what is left of it. Each byte is written
  /// at most once.
  [[nodiscard]] virtual Directory& directory() = 0;
  /// Lets one file appear. Thread-safe. REQUIRES: all of it is written, sync() was called.
  [[nodiscard]] virtual Status show(std::string_view path) = 0;
  /// The output stays as it is. Gives what of it could not be tidied up, by name.
  [[nodiscard]] virtual std::vector<std::string> finish() = 0;
  /// Takes back what was sent and what was shown. Gives what of it is still there, by name.
  [[nodiscard]] virtual std::vector<std::string> abandon() = 0;
};

/// Whether this build writes there: `s3://…`.
[[nodiscard]] bool is_remote_output(std::string_view path);

/// Error: kUsage for a path that nothing can be written to, and for a name that is none.
[[nodiscard]] Status check_output_path(const std::string& path);

/// `cancelled`, set from outside, ends requests; may be null. Errors: kTargetInsideSource for a
/// path in one of `sources`, which may lie anywhere; kTargetExists where something lies below the
/// path, or where another run's unfinished uploads do; kNotFound (the bucket), kPermission,
/// kRemote.
[[nodiscard]] Result<std::unique_ptr<RemoteOutput>> begin_remote_output(
    const std::string& path, const std::vector<std::string>& sources,
    const std::atomic<bool>* cancelled);

/// A file that nobody sees yet, on a server.
struct UnfinishedUpload {
  std::string path;  ///< `s3://bucket/key`
  std::string key;
  std::string id;
  std::string begun;  ///< when, in the server's words
};

/// Those below a path. Errors: kPermission, kRemote.
[[nodiscard]] Result<std::vector<UnfinishedUpload>> list_unfinished_uploads(
    const std::string& path);

/// Removes one of those below `path`, with what was sent of it. Whoever is still at it fails.
/// Errors: as above.
[[nodiscard]] Status remove_unfinished_upload(const std::string& path,
                                              const UnfinishedUpload& upload);

}  // namespace shardwright
