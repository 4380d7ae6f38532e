// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "io/beneath.h"
#include "remote/curl_library.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr std::string_view kSha256OfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
// Older ones sign requests for S3 wrongly.
constexpr unsigned kFirstSigningCurl = 0x075800;

bool is_bucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= 255 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_';
         });
}

bool is_region(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

Result<S3Path> parse_s3_path(std::string_view path) {
  constexpr std::string_view kScheme = "s3://";
  const std::string shown = printable(path);
  if (path.starts_with(kScheme)) path.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(path.find('/'), path.size());
  S3Path found{std::string(path.substr(0, slash)), std::string(path.substr(slash))};
  while (found.prefix.ends_with('/')) found.prefix.pop_back();
  if (found.prefix.starts_with('/')) found.prefix.erase(0, 1);
  if (!is_bucket(found.bucket) || (!found.prefix.empty() && !check_relative_path(found.prefix))) {
    return fail(
        Code::kUsage,
        "{}: names no folder of a bucket; expected s3://BUCKET/PREFIX, with a BUCKET of at least 3 "
        "letters, digits, '-', '.' or '_'",
        shown);
  }
  return found;
}

Result<std::unique_ptr<S3Bucket>> S3Bucket::make(std::shared_ptr<HttpClient> client,
                                                 AwsSettings settings, S3Path path,
                                                 std::string shown) {
  if (!settings.endpoint.empty()) {
    const Url endpoint = SW_TRY(parse_url(settings.endpoint));
    settings.endpoint = endpoint.origin() + endpoint.path;
    while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  }
  const CurlLibrary& curl = client->curl();
  if (!settings.key_id.empty() && curl.version < kFirstSigningCurl) {
    return fail(Code::kUsage,
                "{}: libcurl {} can't sign requests for S3, version 7.88 can; install a newer one",
                printable(shown), curl.version_text);
  }
  return std::unique_ptr<S3Bucket>(
      new S3Bucket(std::move(client), std::move(settings), std::move(path), std::move(shown)));
}

S3Bucket::S3Bucket(std::shared_ptr<HttpClient> client, AwsSettings settings, S3Path path,
                   std::string shown)
    : client_(std::move(client)),
      settings_(std::move(settings)),
      path_(std::move(path)),
      name_(std::move(shown)),
      region_(settings_.region.empty() ? "us-east-1" : settings_.region) {}

std::string S3Bucket::shown_name(std::string_view path) const {
  return path.empty() ? name_ : fmt::format("{}/{}", name_, path);
}

std::string S3Bucket::key_of(std::string_view path) const {
  if (path_.prefix.empty()) return std::string(path);
  return path.empty() ? path_.prefix : fmt::format("{}/{}", path_.prefix, path);
}

std::string S3Bucket::prefix_of(std::string_view folder) const {
  return folder.empty() && path_.prefix.empty() ? "" : key_of(folder) + "/";
}

std::string S3Bucket::shown_key(std::string_view key) const {
  return fmt::format("s3://{}/{}", path_.bucket, key);
}

std::string S3Bucket::way_in(std::string_view ask) const {
  if (!settings_.key_id.empty()) {
    return translated("; see whether these credentials may {} the bucket", ask);
  }
  return "; no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
         "AWS_PROFILE";
}

std::string S3Bucket::region() const {
  const std::scoped_lock lock(mutex_);
  return region_;
}

std::string S3Bucket::url_of(const std::string& key, const std::string& query,
                             const std::string& region) const {
  const std::string behind = percent_encoded(key) + (query.empty() ? "" : "?" + query);
  if (!settings_.endpoint.empty()) {
    return fmt::format("{}/{}/{}", settings_.endpoint, path_.bucket, behind);
  }
  // Certificates are for one word in front of the server's name.
  if (path_.bucket.find('.') != std::string::npos) {
    return fmt::format("https://s3.{}.amazonaws.com/{}/{}", region, path_.bucket, behind);
  }
  return fmt::format("https://{}.s3.{}.amazonaws.com/{}", path_.bucket, region, behind);
}

Result<HttpAnswer> S3Bucket::ask(HttpRequest request, const std::string& key,
                                 const std::string& query, std::string_view payload_sha256) const {
  if (payload_sha256.empty()) payload_sha256 = kSha256OfNothing;
  const std::size_t own_headers = request.headers.size();
  for (int turn = 0;; ++turn) {
    const std::string asked = region();
    request.url = url_of(key, query, asked);
    request.headers.resize(own_headers);
    if (!settings_.key_id.empty()) {
      request.signing = {fmt::format("aws:amz:{}:s3", asked), settings_.key_id, settings_.secret};
      // Amazon wants it; libcurl adds it from 8 on only.
      request.headers.push_back(fmt::format("x-amz-content-sha256: {}", payload_sha256));
      if (!settings_.session_token.empty()) {
        request.headers.push_back("x-amz-security-token: " + settings_.session_token);
      }
    }
    HttpAnswer answer = SW_TRY(client_->ask(request));
    const std::string right = answer.header("x-amz-bucket-region");
    if (answer.is_good() || turn > 0 || right.empty() || right == asked || !is_region(right)) {
      return answer;
    }
    const std::scoped_lock lock(mutex_);
    region_ = right;
  }
}

}  // namespace shardwright
