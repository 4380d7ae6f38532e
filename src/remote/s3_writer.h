// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "remote/s3_answers.h"
#include "remote/s3_bucket.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The requests that write to a bucket. What passes is tried again. Thread-safe. Errors of all:
/// kPermission, kNotFound (the bucket), kRemote, kCancelled.
class S3Writer {
 public:
  /// `cancelled` may be null; it ends neither abort() nor remove().
  S3Writer(std::unique_ptr<S3Bucket> bucket, const std::atomic<bool>* cancelled)
      : bucket_(std::move(bucket)), cancelled_(cancelled) {}

  [[nodiscard]] const S3Bucket& bucket() const { return *bucket_; }

  /// Begins an upload in parts. Gives its id.
  [[nodiscard]] Result<std::string> begin(const std::string& key);
  /// Sends a part, numbered from 1. Gives its ETag.
  [[nodiscard]] Result<std::string> send(const S3Upload& upload, std::uint64_t number,
                                         const ReadableFile& part) const;
  /// Makes an object of `bytes` of the parts, which are told by their ETags in order.
  [[nodiscard]] Status complete(const S3Upload& upload, const std::vector<std::string>& parts,
                                std::uint64_t bytes) const;
  /// Fine where it is gone already.
  [[nodiscard]] Status abort(const S3Upload& upload) const;

  /// Makes an object in one go.
  [[nodiscard]] Status put(const std::string& key, const ReadableFile& file) const;
  [[nodiscard]] Status remove(const std::string& key) const;

  /// The uploads of keys that begin so; `goes_on`, whatever is to stop, where they are to be ended.
  [[nodiscard]] Result<std::vector<S3Upload>> uploads(const std::string& prefix,
                                                      bool goes_on = false) const;
  /// Whether an upload may have been begun that nobody knows the id of: an answer was lost.
  [[nodiscard]] bool may_have_lost_one() const { return has_repeated_; }

 private:
  [[nodiscard]] HttpRequest request_for(const std::string& key, const char* method) const;
  [[nodiscard]] Error refused(const HttpAnswer& answer, const HttpRequest& request) const;
  [[nodiscard]] Status check_size(const std::string& key, std::uint64_t bytes) const;
  [[nodiscard]] Status pause(int turn) const;
  // Asks again after refusals that pass.
  [[nodiscard]] Result<HttpAnswer> upload_file(HttpRequest& request, const std::string& key,
                                               const std::string& query,
                                               const ReadableFile& file) const;

  std::unique_ptr<S3Bucket> bucket_;
  const std::atomic<bool>* cancelled_;
  std::atomic<bool> has_repeated_{false};
};

}  // namespace shardwright
