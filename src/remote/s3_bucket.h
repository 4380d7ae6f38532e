// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "remote/aws_settings.h"
#include "remote/http_client.h"

namespace shardwright {

/// `s3://bucket/prefix`, taken apart.
struct S3Path {
  std::string bucket;
  std::string prefix;  ///< without a slash at its end; "" for the whole bucket
};

/// Error: kUsage.
[[nodiscard]] Result<S3Path> parse_s3_path(std::string_view path);

/// A bucket at Amazon or at another server of its protocol, which is asked with somebody's
/// credentials. Thread-safe.
class S3Bucket {
 public:
  /// Pages of a listing, in a row, that may bring nothing new.
  static constexpr int kMostBarrenPages = 100;

  /// `shown` is what the user calls the prefix. Asks nothing yet. Error: kUsage for an endpoint
  /// that is no address or a libcurl that can't sign.
  [[nodiscard]] static Result<std::unique_ptr<S3Bucket>> make(std::shared_ptr<HttpClient> client,
                                                              AwsSettings settings, S3Path path,
                                                              std::string shown);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// What messages call a path below the prefix; "": the prefix.
  [[nodiscard]] std::string shown_name(std::string_view path) const;
  [[nodiscard]] std::string key_of(std::string_view path) const;
  /// The begin of the keys that lie in a folder.
  [[nodiscard]] std::string prefix_of(std::string_view folder) const;
  /// What a key of this bucket is in the words of messages.
  [[nodiscard]] std::string shown_key(std::string_view key) const;
  /// What to do about a refusal to `ask` (list and read), to go behind a message.
  [[nodiscard]] std::string way_in(std::string_view ask) const;

  /// Asks about an object; of `request` all but the address and who asks is given. `query` is in
  /// the order of its words. What is sent has to have its SHA-256 in hexadecimal digits; "":
  /// nothing is sent. Asks once more where the server says that the bucket is in another region.
  [[nodiscard]] Result<HttpAnswer> ask(HttpRequest request, const std::string& key,
                                       const std::string& query,
                                       std::string_view payload_sha256 = {}) const;

 private:
  S3Bucket(std::shared_ptr<HttpClient> client, AwsSettings settings, S3Path path,
           std::string shown);
  [[nodiscard]] std::string region() const;
  [[nodiscard]] std::string url_of(const std::string& key, const std::string& query,
                                   const std::string& region) const;

  std::shared_ptr<HttpClient> client_;
  AwsSettings settings_;
  S3Path path_;
  std::string name_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::string region_;
};

}  // namespace shardwright
