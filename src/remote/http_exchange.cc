// SPDX-License-Identifier: Apache-2.0
#include "remote/http_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "base/text.h"
#include "base/translated.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostHeaders = 200;
constexpr std::size_t kMostHeaderBytes = std::size_t{64} << 10;
constexpr std::size_t kMostRefusalBytes = std::size_t{8} << 10;
// Servers that know no ranges send the whole file: of a small one the rest is thrown away.
constexpr std::uint64_t kMostWholeBytes = std::uint64_t{8} << 20;
constexpr long kSlowBytesPerSecond = 1024;
constexpr long kMostConnectSeconds = 15;
constexpr long kMostIdleConnections = 4;

// `bytes 0-99/1000`.
struct ContentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;               // behind the last one
  std::optional<std::uint64_t> total;  // a server need not know it: RFC 9110, 14.4
};

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const auto begin = take_number(text);
  if (!begin || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const auto last = take_number(text);
  if (!last || !text.starts_with('/') || *last < *begin) return std::nullopt;
  text.remove_prefix(1);
  if (text == "*") {
    return ContentRange{static_cast<std::uint64_t>(*begin), static_cast<std::uint64_t>(*last) + 1,
                        std::nullopt};
  }
  const auto total = take_number(text);
  if (!total || !text.empty() || *last >= *total) return std::nullopt;
  return ContentRange{static_cast<std::uint64_t>(*begin), static_cast<std::uint64_t>(*last) + 1,
                      static_cast<std::uint64_t>(*total)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

/// Takes what curl hands over.
class Receiver {
 public:
  Receiver(const HttpRequest& request, HttpTry& attempt) : request_(request), attempt_(attempt) {}

  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
    return static_cast<Receiver*>(self)->take_header({bytes, size * count}) ? size * count : 0;
  }
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
    return static_cast<Receiver*>(self)->take_body({bytes, size * count}) ? size * count : 0;
  }

  /// Whether enough was seen though the transfer was broken off.
  [[nodiscard]] bool is_done() const { return is_done_; }

 private:
  [[nodiscard]] bool is_part() const { return !request_.into.empty(); }

  bool take_header(std::string_view line) {
    HttpAnswer& answer = attempt_.answer;
    if (line.starts_with("HTTP/")) {  // also behind a `100 Continue`
      answer.headers.clear();
      std::string_view rest = line.substr(std::min(line.find(' '), line.size()));
      rest = trimmed(rest);
      answer.status = static_cast<long>(take_number(rest).value_or(0));
      header_bytes_ = 0;
      return true;
    }
    header_bytes_ += line.size();
    if (header_bytes_ > kMostHeaderBytes || answer.headers.size() >= kMostHeaders) {
      attempt_.hopeless = "its headers have no end";
      return false;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return true;
    std::string name(line.substr(0, colon));
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    answer.headers[std::move(name)] = trimmed(line.substr(colon + 1));
    return true;
  }

  bool take_body(std::string_view bytes) {
    if (!attempt_.answer.is_good()) return keep_refusal(bytes);
    if (!is_part()) return keep_text(bytes);
    if (!is_checked_ && !check_part()) return false;
    is_checked_ = true;
    const std::uint64_t skipped = std::min<std::uint64_t>(to_skip_, bytes.size());
    to_skip_ -= skipped;
    bytes.remove_prefix(static_cast<std::size_t>(skipped));
    const std::span<std::byte> into =
        request_.into.subspan(static_cast<std::size_t>(attempt_.skip + attempt_.received));
    const std::size_t fits = std::min(bytes.size(), into.size());
    if (fits > 0) std::memcpy(into.data(), bytes.data(), fits);
    attempt_.received += fits;
    if (fits == bytes.size()) return true;
    is_done_ = attempt_.answer.status == 200;
    if (!is_done_) attempt_.hopeless = "it sends more than it says";
    return false;
  }

  bool keep_refusal(std::string_view bytes) {
    std::string& body = attempt_.answer.body;
    body += bytes.substr(0, kMostRefusalBytes - std::min(body.size(), kMostRefusalBytes));
    is_done_ = body.size() >= kMostRefusalBytes;
    return !is_done_;
  }

  bool keep_text(std::string_view bytes) {
    std::string& body = attempt_.answer.body;
    if (bytes.size() > request_.most_body_bytes - std::min(body.size(), request_.most_body_bytes)) {
      attempt_.hopeless =
          translated("it answers with more than {} bytes", request_.most_body_bytes);
      return false;
    }
    body += bytes;
    return true;
  }

  // Whether the answer is of the file that was opened, and no other try's bytes are of another.
  bool check_tag() {
    const HttpAnswer& answer = attempt_.answer;
    const std::string tag = tag_of(answer);
    if (attempt_.tag.empty()) attempt_.tag = tag;
    // One that says an ETag sometimes may say the date always.
    if (tag == attempt_.tag || answer.header("last-modified") == attempt_.tag) return true;
    const std::string opened = printable(attempt_.tag);
    attempt_.hopeless =
        tag.empty()
            ? translated(
                  "the server no longer tells its ETag or date, which was {} when it was "
                  "opened; run the command again once nothing writes to this checkpoint any "
                  "more",
                  opened)
            : translated(
                  "the server calls it {} now, {} when it was opened; run the command again "
                  "once nothing writes to this checkpoint any more",
                  printable(tag), opened);
    attempt_.answer.status = 412;
    return false;
  }

  // Whether the answer is of the part that was asked for; sets `to_skip_`.
  bool check_part() {
    const HttpAnswer& answer = attempt_.answer;
    const std::string encoding = answer.header("content-encoding");
    if (!encoding.empty() && encoding != "identity") {
      attempt_.hopeless = translated("it packs what it sends ({})", printable(encoding));
      return false;
    }
    const std::uint64_t begin = request_.offset + attempt_.skip;
    if (answer.status == 200) {
      const std::string length = answer.header("content-length");
      std::string_view rest = length;
      const auto size = take_number(rest);
      const bool is_whole =
          size && rest.empty() && *size >= 0 && static_cast<std::uint64_t>(*size) == request_.total;
      if (!is_whole ||
          (request_.total > kMostWholeBytes && request_.into.size() < request_.total)) {
        attempt_.hopeless = "it sends no parts of files; serve them from one that knows ranges";
        return false;
      }
      to_skip_ = begin;
      return check_tag();
    }
    const std::string text = answer.header("content-range");
    const auto range = parse_content_range(text);
    const std::uint64_t end = request_.offset + request_.into.size();
    if (answer.status != 206 || !range || range->begin != begin || range->end != end) {
      attempt_.broken =
          translated("found bytes '{}', expected {}-{}", printable(text), begin, end - 1);
      return false;
    }
    if (range->total && *range->total != request_.total) {
      attempt_.hopeless = translated("the file has {} bytes now, {} when it was opened",
                                     *range->total, request_.total);
      attempt_.answer.status = 412;
      return false;
    }
    return check_tag();
  }

  const HttpRequest& request_;
  HttpTry& attempt_;
  std::size_t header_bytes_ = 0;
  std::uint64_t to_skip_ = 0;
  bool is_checked_ = false;
  bool is_done_ = false;
};

/// Gives curl what it sends.
class Sender {
 public:
  Sender(const HttpRequest& request, HttpTry& attempt) : request_(request), attempt_(attempt) {}

  static std::size_t on_read(char* buffer, std::size_t size, std::size_t count, void* self) {
    return static_cast<Sender*>(self)->give({reinterpret_cast<std::byte*>(buffer), size * count});
  }
  // A connection that broke at once is replaced by another, on which all is sent again.
  static int on_seek(void* self, curl_off_t offset, int origin) {
    if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
    static_cast<Sender*>(self)->at_ = static_cast<std::uint64_t>(offset);
    return CURL_SEEKFUNC_OK;
  }
  static int on_progress(void* self, curl_off_t /*to_receive*/, curl_off_t /*received*/,
                         curl_off_t /*to_send*/, curl_off_t /*sent*/) {
    return static_cast<Sender*>(self)->is_cancelled() ? 1 : 0;
  }

 private:
  std::size_t give(std::span<std::byte> buffer) {
    const ReadableFile& file = *request_.upload;
    const std::uint64_t left = file.size() - std::min(at_, file.size());
    buffer = buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
    if (buffer.empty()) return 0;
    Status status = file.read_at(at_, buffer);
    if (!status) {
      attempt_.failure = std::move(status).error();
      return CURL_READFUNC_ABORT;
    }
    at_ += buffer.size();
    return buffer.size();
  }

  bool is_cancelled() {
    if (attempt_.cancelled == nullptr || !*attempt_.cancelled) return false;
    attempt_.failure =
        Error{Code::kCancelled, translated("{}: stopped", printable(request_.shown)), 0};
    return true;
  }

  const HttpRequest& request_;
  HttpTry& attempt_;
  std::uint64_t at_ = 0;
};

/// A list of headers as curl wants it.
class HeaderList {
 public:
  explicit HeaderList(const CurlLibrary& curl) : curl_(curl) {}
  ~HeaderList() { curl_.slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;

  void add(const std::string& line) {
    curl_slist* longer = curl_.slist_append(list_, line.c_str());
    if (longer != nullptr) list_ = longer;
  }
  [[nodiscard]] curl_slist* get() const { return list_; }

 private:
  const CurlLibrary& curl_;
  curl_slist* list_ = nullptr;
};

bool may_be_tried_again(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_AGAIN:
      return true;
    default:
      return false;
  }
}

}  // namespace

void exchange(const CurlLibrary& curl, CURL* handle, const HttpSettings& settings,
              const HttpRequest& request, HttpTry& attempt) {
  attempt.answer = {};
  attempt.answer.target = attempt.url;
  attempt.is_unreachable = false;
  curl.easy_reset(handle);
  const auto set = [&](CURLoption option, auto value) {
    (void)curl.easy_setopt(handle, option, value);
  };
  Receiver receiver(request, attempt);
  set(CURLOPT_URL, attempt.url.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "shardwright");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_MAXCONNECTS, kMostIdleConnections);
  set(CURLOPT_CONNECTTIMEOUT, std::min(kMostConnectSeconds, settings.slow_seconds));
  set(CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, settings.slow_seconds * request.patience);
  set(CURLOPT_HEADERFUNCTION, &Receiver::on_header);
  set(CURLOPT_HEADERDATA, &receiver);
  set(CURLOPT_WRITEFUNCTION, &Receiver::on_body);
  set(CURLOPT_WRITEDATA, &receiver);
  if (!settings.authorities.empty()) set(CURLOPT_CAINFO, settings.authorities.c_str());
  if (request.is_head) set(CURLOPT_NOBODY, 1L);
  Sender sender(request, attempt);
  if (request.upload != nullptr) {
    constexpr long kUploadBuffer = 256L << 10;
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_UPLOAD_BUFFERSIZE, kUploadBuffer);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.upload->size()));
    set(CURLOPT_READFUNCTION, &Sender::on_read);
    set(CURLOPT_READDATA, &sender);
    set(CURLOPT_SEEKFUNCTION, &Sender::on_seek);
    set(CURLOPT_SEEKDATA, &sender);
  } else if (request.method == "POST") {
    set(CURLOPT_POST, 1L);
    // On a connection that proves dead curl asks once more by itself, and nobody hears of it.
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.text.size()));
    set(CURLOPT_POSTFIELDS, request.text.c_str());
  } else if (!request.method.empty()) {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  if (attempt.cancelled != nullptr) {
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Sender::on_progress);
    set(CURLOPT_XFERINFODATA, &sender);
  }
  std::string range;
  if (!request.into.empty()) {
    range = fmt::format("{}-{}", request.offset + attempt.skip,
                        request.offset + request.into.size() - 1);
    set(CURLOPT_RANGE, range.c_str());
  }
  HeaderList headers(curl);
  for (const std::string& header : request.headers) headers.add(header);
  if (attempt.is_origin && !request.bearer.empty()) {
    headers.add("Authorization: Bearer " + request.bearer);
  }
  if (attempt.is_origin && !request.signing.scope.empty()) {
    set(CURLOPT_AWS_SIGV4, request.signing.scope.c_str());
    set(CURLOPT_USERNAME, request.signing.key.c_str());
    set(CURLOPT_PASSWORD, request.signing.secret.c_str());
  } else if (attempt.is_origin && request.bearer.empty()) {
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  }
  set(CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = curl.easy_perform(handle);
  if (code == CURLE_OK || receiver.is_done() || !attempt.hopeless.empty()) return;
  if (!attempt.broken.empty() || attempt.failure) return;
  const std::string reason = curl.easy_strerror(code);
  attempt.is_unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT;
  (may_be_tried_again(code) ? attempt.broken : attempt.hopeless) = reason;
}

}  // namespace shardwright
