// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/storage.h"

namespace shardwright {

struct CurlLibrary;

/// How long a server is waited for.
struct HttpSettings {
  int tries = 6;                              ///< of a request, in all
  std::chrono::milliseconds first_wait{250};  ///< before the second try; doubled each time
  long slow_seconds = 30;                     ///< a transfer that hardly moves so long is given up
  std::size_t connections = 16;               ///< at most, at a time
  std::string authorities;                    ///< a file of certificates; "": libcurl's own

  /// $SHARDWRIGHT_REMOTE_TRIES and $SHARDWRIGHT_REMOTE_TIMEOUT (seconds); certificates are those of
  /// $CURL_CA_BUNDLE, $AWS_CA_BUNDLE, $REQUESTS_CA_BUNDLE or $SSL_CERT_FILE. Error: kUsage for what
  /// is no number or out of bounds.
  [[nodiscard]] static Result<HttpSettings> from_environment();
};

/// Who asks, for S3: libcurl signs with it.
struct HttpSigning {
  std::string scope;  ///< `aws:amz:REGION:s3`; "": nothing is signed
  std::string key;
  std::string secret;
};

struct HttpRequest {
  std::string shown;  ///< what messages call it; no secrets
  std::string url;
  /// Where a request for `url` was sent to before; asked first, `url` again where that is refused.
  std::string known_target;
  bool is_head = false;
  std::string method;  ///< where it is neither GET nor HEAD: what is asked for may be done twice
  std::string text;    ///< sent with a POST
  const ReadableFile* upload = nullptr;  ///< sent with a PUT; borrowed
  std::vector<std::string> headers;      ///< `Name: value`; sent to every server
  std::string bearer;                    ///< a token; sent to the server of `url` alone
  HttpSigning signing;  ///< of the request for `url`; redirections are refused then

  /// A part of a file of `total` bytes, which fills `into`; empty: the whole body, as a text.
  std::span<std::byte> into;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::string tag;  ///< of that file, as `tag_of` tells it; "": the first answer's
  std::uint64_t most_body_bytes = 0;  ///< of a text
  int patience = 1;                   ///< times the usual wait for a server that says nothing
  /// Set from outside to give up; null: what HttpClient::obey() says.
  const std::atomic<bool>* cancelled = nullptr;
  bool goes_on = false;  ///< whatever those say: it takes something back
};

struct HttpAnswer {
  long status = 0;
  std::map<std::string, std::string> headers;  ///< by their names in lower case
  std::string body;    ///< the text, or the begin of what explains a refusal
  std::string target;  ///< the URL that answered
  int tries = 0;       ///< before this one, which may have done what was asked for

  [[nodiscard]] bool is_good() const { return status >= 200 && status < 300; }
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// What tells a file from itself after a change: its ETag, else the date of its last change; ""
/// where the server says neither.
[[nodiscard]] std::string tag_of(const HttpAnswer& answer);

/// Asks web servers, and asks again where that may help (no connection, no progress, 408, 429, 5xx,
/// a body that ends early), after waits that double. Follows up to five redirections, from https to
/// https only. Keeps connections open for the next request. Thread-safe.
class HttpClient {
 public:
  /// Error: kNotFound where this machine has no libcurl.
  [[nodiscard]] static Result<std::shared_ptr<HttpClient>> open(const HttpSettings& settings);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// The answer, be it a refusal. Of a part of a file: 206 with exactly that part of a file of
  /// `total` bytes, all of it of the version that `tag` names, or a refusal. Errors: kRemote,
  /// kSourceChanged (the file has another size or tag now), kCancelled, those of reading what is
  /// sent.
  [[nodiscard]] Result<HttpAnswer> ask(const HttpRequest& request) const;

  /// Requests give up when `cancelled` is set, within a second; null: none does.
  void obey(const std::atomic<bool>* cancelled) { cancelled_ = cancelled; }

  [[nodiscard]] const CurlLibrary& curl() const { return *curl_; }

 private:
  class Handle;
  class Exchange;

  HttpClient(const CurlLibrary& curl, const HttpSettings& settings)
      : curl_(&curl), settings_(settings) {}

  const CurlLibrary* curl_;
  HttpSettings settings_;
  std::atomic<const std::atomic<bool>*> cancelled_{nullptr};
  mutable std::mutex mutex_;  // of what follows
  mutable std::condition_variable freed_;
  mutable std::vector<void*> idle_;
  mutable std::size_t busy_ = 0;
  mutable int process_ = 0;  // whose `idle_` are: after fork() they are the parent's
};

/// What a refusal means, as an error: kPermission for 401 and 403, kNotFound for 404 and 410,
/// kSourceChanged for 412 and 416, kRemote for others. `way_out` goes behind the first two; `use`
/// is what the server was asked for.
[[nodiscard]] Error refusal(const HttpAnswer& answer, const std::string& shown,
                            std::string_view way_out, std::string_view use = "read from");

}  // namespace shardwright
