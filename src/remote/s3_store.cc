// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_store.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/fail.h"
#include "base/text.h"
#include "io/beneath.h"
#include "remote/curl_library.h"
#include "remote/s3_listing.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostListingBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMostObjects = 1'000'000;  // in one folder
// The SHA-256 of nothing: none of these requests has a body.
constexpr const char* kNoPayload =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
// Older ones sign requests for S3 wrongly.
constexpr unsigned kFirstSigningCurl = 0x075800;

class S3Store final : public RemoteStore {
 public:
  S3Store(std::shared_ptr<HttpClient> client, AwsSettings settings, S3Path path, std::string shown)
      : client_(std::move(client)),
        settings_(std::move(settings)),
        path_(std::move(path)),
        name_(std::move(shown)),
        region_(settings_.region.empty() ? "us-east-1" : settings_.region) {}

  const std::string& name() const override { return name_; }

  Result<std::vector<DirectoryEntry>> list(std::string_view folder) const override {
    const std::string shown = shown_name(folder);
    const std::string prefix = folder.empty() && path_.prefix.empty() ? "" : key_of(folder) + "/";
    std::vector<DirectoryEntry> entries;
    std::string token;
    do {
      const S3Listing page = SW_TRY(page_of(prefix, token, shown));
      for (const S3Listing::Object& object : page.objects) {
        if (!object.key.starts_with(prefix)) return foreign_key(shown, object.key);
        const std::string name = object.key.substr(prefix.size());
        // A folder may have an object of its own, without a name in it.
        if (name.empty()) continue;
        entries.push_back({name, false, object.size});
        remember(folder, name, {object.size, object.tag});
      }
      for (const std::string& inner : page.folders) {
        if (!inner.starts_with(prefix)) return foreign_key(shown, inner);
        std::string name = inner.substr(prefix.size());
        if (name.ends_with('/')) name.pop_back();
        entries.push_back({std::move(name), true, 0});
      }
      if (entries.size() > kMostObjects) {
        return fail(Code::kLimit, "{}: found more than {} objects in one folder", printable(shown),
                    kMostObjects);
      }
      if (!page.next.empty() && page.next == token) {
        return fail(Code::kRemote, "{}: the server gives the same page of its listing again",
                    printable(shown));
      }
      token = page.next;
    } while (!token.empty());
    if (entries.empty()) {
      return fail(Code::kNotFound, "{}: no object's name begins so", printable(shown));
    }
    return entries;
  }

  Result<RemoteObject> find(std::string_view path) const override {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = seen_.find(path);
      if (found != seen_.end()) return found->second;
    }
    return look(path);
  }

  Result<RemoteObject> look(std::string_view path) const override {
    HttpRequest request;
    request.shown = shown_name(path);
    request.is_head = true;
    const HttpAnswer answer = SW_TRY(ask(request, key_of(path), {}));
    if (!answer.is_good()) return std::unexpected(refusal(answer, request.shown, way_in()));
    const std::string length = answer.header("content-length");
    std::string_view rest = length;
    const auto size = take_number(rest);
    if (!size || !rest.empty() || *size < 0) {
      return fail(Code::kRemote, "{}: the server doesn't tell how long it is",
                  printable(request.shown));
    }
    return RemoteObject{static_cast<std::uint64_t>(*size), answer.header("etag")};
  }

  Status read(std::string_view path, const RemoteObject& object, std::uint64_t offset,
              std::span<std::byte> buffer) const override {
    if (buffer.empty()) return {};
    HttpRequest request;
    request.shown = shown_name(path);
    request.into = buffer;
    request.offset = offset;
    request.total = object.size;
    if (!object.tag.empty()) request.headers.push_back("If-Match: " + object.tag);
    const HttpAnswer answer = SW_TRY(ask(request, key_of(path), {}));
    if (!answer.is_good()) return std::unexpected(refusal(answer, request.shown, way_in()));
    const std::string tag = answer.header("etag");
    if (tag == object.tag) return {};
    return fail(Code::kSourceChanged,
                "{}: changed while it was read: its ETag is {} now, {} when it was listed; run the "
                "command again once nothing writes to this checkpoint any more",
                printable(request.shown), printable(tag), printable(object.tag));
  }

 private:
  [[nodiscard]] std::string shown_name(std::string_view path) const {
    return path.empty() ? name_ : fmt::format("{}/{}", name_, path);
  }

  [[nodiscard]] std::string key_of(std::string_view path) const {
    if (path_.prefix.empty()) return std::string(path);
    return path.empty() ? path_.prefix : fmt::format("{}/{}", path_.prefix, path);
  }

  [[nodiscard]] std::string way_in() const {
    if (!settings_.key_id.empty()) {
      return "; see whether these credentials may list and read the bucket";
    }
    return "; no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
           "AWS_PROFILE";
  }

  static std::unexpected<Error> foreign_key(const std::string& shown, const std::string& key) {
    return fail(Code::kRemote, "{}: the server lists '{}', which is none of this folder's names",
                printable(shown), printable(key));
  }

  void remember(std::string_view folder, const std::string& name, RemoteObject object) const {
    std::string path = folder.empty() ? name : fmt::format("{}/{}", folder, name);
    const std::scoped_lock lock(mutex_);
    seen_.insert_or_assign(std::move(path), std::move(object));
  }

  Result<S3Listing> page_of(const std::string& prefix, const std::string& token,
                            const std::string& shown) const {
    HttpRequest request;
    request.shown = shown;
    request.most_body_bytes = kMostListingBytes;
    // In the order in which they are signed.
    std::string query;
    if (!token.empty()) query += "continuation-token=" + percent_encoded(token, true) + "&";
    query += "delimiter=%2F&encoding-type=url&list-type=2&prefix=" + percent_encoded(prefix, true);
    const HttpAnswer answer = SW_TRY(ask(request, "", query));
    if (!answer.is_good()) return std::unexpected(refusal(answer, shown, way_in()));
    auto listing = parse_s3_listing(answer.body);
    if (!listing) return std::unexpected(std::move(listing).error().within(printable(shown)));
    return listing;
  }

  [[nodiscard]] std::string region() const {
    const std::scoped_lock lock(mutex_);
    return region_;
  }

  [[nodiscard]] std::string url_of(const std::string& key, const std::string& query,
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

  // Once more where the server says that the bucket is in another region.
  Result<HttpAnswer> ask(HttpRequest request, const std::string& key,
                         const std::string& query) const {
    const std::size_t own_headers = request.headers.size();
    for (int turn = 0;; ++turn) {
      const std::string asked = region();
      request.url = url_of(key, query, asked);
      request.headers.resize(own_headers);
      if (!settings_.key_id.empty()) {
        request.signing = {fmt::format("aws:amz:{}:s3", asked), settings_.key_id, settings_.secret};
        // Amazon wants it; libcurl adds it from 8 on only.
        request.headers.emplace_back(kNoPayload);
        if (!settings_.session_token.empty()) {
          request.headers.push_back("x-amz-security-token: " + settings_.session_token);
        }
      }
      HttpAnswer answer = SW_TRY(client_->ask(request));
      const std::string right = answer.header("x-amz-bucket-region");
      if (answer.is_good() || turn > 0 || right.empty() || right == asked || !is_word(right)) {
        return answer;
      }
      const std::scoped_lock lock(mutex_);
      region_ = right;
    }
  }

  static bool is_word(std::string_view text) {
    return std::ranges::all_of(
        text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  }

  std::shared_ptr<HttpClient> client_;
  AwsSettings settings_;
  S3Path path_;
  std::string name_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::string region_;
  mutable std::map<std::string, RemoteObject, std::less<>> seen_;
};

bool is_bucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= 255 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_';
         });
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
    return fail(Code::kUsage, "{}: names no folder of a bucket; expected s3://BUCKET/PREFIX",
                shown);
  }
  return found;
}

Result<std::unique_ptr<RemoteStore>> make_s3_store(std::shared_ptr<HttpClient> client,
                                                   const AwsSettings& settings, const S3Path& path,
                                                   std::string shown) {
  AwsSettings checked = settings;
  if (!checked.endpoint.empty()) {
    const Url endpoint = SW_TRY(parse_url(checked.endpoint));
    checked.endpoint = endpoint.origin() + endpoint.path;
    while (checked.endpoint.ends_with('/')) checked.endpoint.pop_back();
  }
  const CurlLibrary& curl = client->curl();
  if (!checked.key_id.empty() && curl.version < kFirstSigningCurl) {
    return fail(Code::kUsage,
                "{}: libcurl {} can't sign requests for S3, version 7.88 can; install a newer one",
                printable(shown), curl.version_text);
  }
  return std::make_unique<S3Store>(std::move(client), std::move(checked), path, std::move(shown));
}

}  // namespace shardwright
