// SPDX-License-Identifier: Apache-2.0
#include "remote/http_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/fail.h"
#include "base/text.h"
#include "remote/curl_library.h"
#include "remote/http_exchange.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr int kMostRedirections = 5;
// Of a server that can't be reached: its name is rather wrong than it is late.
constexpr int kTriesToReach = 3;
constexpr std::chrono::milliseconds kLongestWait{10'000};
constexpr std::int64_t kLongestAskedWait = 60;  // seconds
// A try that came so far counts as the first one again.
constexpr std::uint64_t kProgressBytes = std::uint64_t{1} << 20;

Result<long> number_from(const char* variable, long least, long most, long otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (number && rest.empty() && *number >= least && *number <= most) {
    return static_cast<long>(*number);
  }
  return fail(Code::kUsage, "${}: found '{}', expected a number from {} to {}", variable,
              printable(text), least, most);
}

bool is_redirection(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// 501 stays: the server doesn't know what it is asked for.
bool is_passing(long status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501);
}

// A part of a server's explanation that is fit to be shown.
std::string explanation(const HttpAnswer& answer) {
  std::string text = answer.header("x-error-message");
  if (text.empty()) {
    for (const std::string_view tag : {"Code", "Message"}) {
      const std::size_t begin = answer.body.find(fmt::format("<{}>", tag));
      const std::size_t end = answer.body.find(fmt::format("</{}>", tag));
      if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
      if (!text.empty()) text += ": ";
      text += answer.body.substr(begin + tag.size() + 2, end - begin - tag.size() - 2);
    }
  }
  constexpr std::size_t kMostBytes = 200;
  if (text.size() > kMostBytes) text.resize(kMostBytes);
  return text.empty() ? text : fmt::format(" ({})", printable(text));
}

std::string status_text(const HttpAnswer& answer) {
  return translated("HTTP status {}{}", answer.status, explanation(answer));
}

// What is asked for, to stand in front of a message.
std::string object_of(const HttpRequest& request) {
  if (request.into.empty()) return printable(request.shown);
  return fmt::format("{}@{}+{}", printable(request.shown), request.offset, request.into.size());
}

// Where a redirection leads. `Location` may be relative.
Result<Url> target_of(const std::string& from, const std::string& location) {
  const Url base = SW_TRY(parse_url(from));
  if (location.starts_with("//")) return parse_url(base.scheme + ":" + location);
  if (location.starts_with("/")) return parse_url(base.origin() + location);
  if (location.find("://") != std::string::npos) return parse_url(location);
  return parse_url(base.origin() + base.path.substr(0, base.path.rfind('/') + 1) + location);
}

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::string tag_of(const HttpAnswer& answer) {
  const std::string tag = answer.header("etag");
  return tag.empty() ? answer.header("last-modified") : tag;
}

Result<HttpSettings> HttpSettings::from_environment() {
  HttpSettings settings;
  settings.tries = static_cast<int>(SW_TRY(number_from("SHARDWRIGHT_REMOTE_TRIES", 1, 100, 6)));
  settings.slow_seconds = SW_TRY(number_from("SHARDWRIGHT_REMOTE_TIMEOUT", 1, 3600, 30));
  for (const char* variable :
       {"CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* file = std::getenv(variable);
    if (file == nullptr || *file == '\0') continue;
    settings.authorities = file;
    break;
  }
  return settings;
}

/// One of curl's handles while it is used.
class HttpClient::Handle {
 public:
  explicit Handle(const HttpClient& client) : client_(client) {
    std::unique_lock lock(client_.mutex_);
    if (client_.process_ != ::getpid()) {
      // A child must not speak on its parent's connections, nor end them.
      client_.idle_.clear();
      client_.busy_ = 0;
      client_.process_ = ::getpid();
    }
    client_.freed_.wait(lock, [&] { return client_.busy_ < client_.settings_.connections; });
    ++client_.busy_;
    if (client_.idle_.empty()) {
      handle_ = client_.curl_->easy_init();
    } else {
      handle_ = client_.idle_.back();
      client_.idle_.pop_back();
    }
  }
  ~Handle() {
    const std::scoped_lock lock(client_.mutex_);
    --client_.busy_;
    if (handle_ != nullptr) client_.idle_.push_back(handle_);
    client_.freed_.notify_one();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  [[nodiscard]] CURL* get() const { return handle_; }

 private:
  const HttpClient& client_;
  CURL* handle_ = nullptr;
};

/// A request until its answer is there: redirections are followed, tries repeated.
class HttpClient::Exchange {
 public:
  Exchange(const HttpClient& client, const HttpRequest& request, CURL* handle)
      : client_(client), request_(request), handle_(handle) {
    attempt_.tag = request.tag;
    if (request.goes_on) return;
    attempt_.cancelled = request.cancelled;
    if (attempt_.cancelled == nullptr) attempt_.cancelled = client.cancelled_;
  }

  Result<HttpAnswer> run() {
    const Url origin = SW_TRY(parse_url(request_.url));
    bool is_hint = !request_.known_target.empty();
    attempt_.url = is_hint ? request_.known_target : request_.url;
    while (true) {
      attempt_.is_origin = !is_elsewhere(origin);
      attempt_.received = 0;
      attempt_.broken.clear();
      exchange(*client_.curl_, handle_, client_.settings_, request_, attempt_);
      if (attempt_.failure) return std::unexpected(*std::move(attempt_.failure));
      attempt_.skip += attempt_.received;
      attempt_.answer.tries = asked_++;
      const HttpAnswer& answer = attempt_.answer;
      if (is_hint && !is_complete()) {  // it led there once, which is no more than a hint
        is_hint = false;
        attempt_.hopeless.clear();
        attempt_.skip = 0;
        begin_again();
        continue;
      }
      if (!attempt_.hopeless.empty()) return std::unexpected(hopeless());
      if (!attempt_.broken.empty() || is_passing(answer.status) || is_cut()) {
        SW_TRY(wait());
        begin_again();
        continue;
      }
      const bool is_followed = request_.signing.scope.empty() && is_redirection(answer.status);
      if (is_followed && !answer.header("location").empty()) {
        SW_TRY(follow());
        continue;
      }
      return std::move(attempt_.answer);
    }
  }

 private:
  [[nodiscard]] bool is_elsewhere(const Url& origin) const {
    const auto url = parse_url(attempt_.url);
    return !url || url->origin() != origin.origin();
  }
  [[nodiscard]] bool is_complete() const {
    return attempt_.answer.is_good() && attempt_.broken.empty() && attempt_.hopeless.empty() &&
           !is_cut();
  }
  // A part that ends early is cut; nothing else tells where it should end.
  [[nodiscard]] bool is_cut() const {
    return !request_.into.empty() && attempt_.answer.is_good() &&
           attempt_.skip < request_.into.size();
  }

  void begin_again() {
    attempt_.url = request_.url;
    redirections_ = 0;
  }

  [[nodiscard]] std::string reason() const {
    if (!attempt_.broken.empty()) return attempt_.broken;
    if (is_passing(attempt_.answer.status)) return status_text(attempt_.answer);
    return translated("only {} bytes came", attempt_.skip);
  }

  [[nodiscard]] Error hopeless() const {
    const bool is_changed = attempt_.answer.status == 412;
    const char* const ill = request_.method.empty() ? "the server can't be read from"
                                                    : "the server can't be written to";
    return {is_changed ? Code::kSourceChanged : Code::kRemote,
            translated("{}: {}: {}", object_of(request_),
                       is_changed ? "changed while it was read" : ill, attempt_.hopeless),
            0};
  }

  // Before another try; the error where there were enough.
  Status wait() {
    if (attempt_.received >= kProgressBytes) tries_ = 0;
    ++tries_;
    const int most = client_.settings_.tries;
    if (tries_ >= (attempt_.is_unreachable ? std::min(most, kTriesToReach) : most)) {
      return fail(Code::kRemote,
                  "{}: the server did not {} it in {} tries: {}; run the command again when it "
                  "can be reached",
                  object_of(request_),
                  request_.method.empty() ? translated("give") : translated("take"), tries_,
                  reason());
    }
    std::chrono::milliseconds pause =
        client_.settings_.first_wait * (1 << std::min(tries_ - 1, 10));
    pause = std::min(pause, kLongestWait);
    // Those that were turned away together must not come back together.
    pause += pause *
             static_cast<int>(std::hash<std::thread::id>()(std::this_thread::get_id()) % 50) / 100;
    const std::string asked = attempt_.answer.header("retry-after");
    std::string_view rest = asked;
    const auto seconds = take_number(rest);
    if (is_passing(attempt_.answer.status) && seconds && rest.empty() && *seconds >= 0) {
      pause = std::chrono::seconds(std::min(*seconds, kLongestAskedWait));
    }
    return sleep(pause);
  }

  [[nodiscard]] Status sleep(std::chrono::milliseconds pause) const {
    constexpr std::chrono::milliseconds kNap{100};
    for (; pause.count() > 0; pause -= kNap) {
      if (attempt_.cancelled != nullptr && *attempt_.cancelled) {
        return fail(Code::kCancelled, "{}: stopped", printable(request_.shown));
      }
      std::this_thread::sleep_for(std::min(pause, kNap));
    }
    return {};
  }

  Status follow() {
    const std::string& location = attempt_.answer.headers["location"];
    if (++redirections_ > kMostRedirections) {
      return fail(Code::kRemote, "{}: the server redirects more than {} times", object_of(request_),
                  kMostRedirections);
    }
    const auto target = target_of(attempt_.url, location);
    const bool was_safe = attempt_.url.starts_with("https:");
    if (!target || (was_safe && target->scheme != "https")) {
      return fail(Code::kRemote, "{}: the server redirects to {}, expected https",
                  object_of(request_), printable(shown_url(location)));
    }
    attempt_.url = target->text();
    return {};
  }

  const HttpClient& client_;
  const HttpRequest& request_;
  CURL* handle_;
  HttpTry attempt_;
  int asked_ = 0;  // in all
  int tries_ = 0;
  int redirections_ = 0;
};

Result<std::shared_ptr<HttpClient>> HttpClient::open(const HttpSettings& settings) {
  const CurlLibrary* curl = SW_TRY(load_curl());
  return std::shared_ptr<HttpClient>(new HttpClient(*curl, settings));
}

HttpClient::~HttpClient() {
  if (process_ != ::getpid()) return;
  for (void* handle : idle_) curl_->easy_cleanup(handle);
}

Result<HttpAnswer> HttpClient::ask(const HttpRequest& request) const {
  const Handle handle(*this);
  if (handle.get() == nullptr) return fail(Code::kOutOfMemory, "no memory for a connection");
  return Exchange(*this, request, handle.get()).run();
}

Error refusal(const HttpAnswer& answer, const std::string& shown, std::string_view way_out,
              std::string_view use) {
  const std::string name = printable(shown);
  const std::string status = status_text(answer);
  switch (answer.status) {
    case 401:
    case 403:
      return {Code::kPermission,
              translated("{}: the server refuses access: {}{}", name, status, way_out), 0};
    case 404:
    case 410:
      return {Code::kNotFound, translated("{}: not there: {}{}", name, status, way_out), 0};
    case 412:
    case 416:
      return {Code::kSourceChanged,
              translated("{}: changed while it was read: {}; run the command again once nothing "
                         "writes to this checkpoint any more",
                         name, status),
              0};
    default:
      return {Code::kRemote, translated("{}: the server can't be {}: {}", name, use, status), 0};
  }
}

}  // namespace shardwright
