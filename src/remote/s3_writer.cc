// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/sha256.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostAnswerBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMostUploads = 1'000'000;
constexpr int kMostTurns = 5;
// Parts of large objects are put together while the server says little or nothing.
constexpr int kPatienceToComplete = 20;
// Refusals with status 400 or 409, or errors behind a status of 200, after which it may be asked
// again.
constexpr std::array<std::string_view, 7> kPassing = {
    "InternalError",  "SlowDown",  "ServiceUnavailable",       "OperationAborted",
    "RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch"};

bool is_passing_code(std::string_view code) {
  return std::ranges::find(kPassing, code) != kPassing.end();
}

bool is_passing_refusal(const HttpAnswer& answer) {
  return (answer.status == 400 || answer.status == 409) &&
         std::ranges::any_of(kPassing, [&](std::string_view code) {
           return answer.body.find(fmt::format("<Code>{}</Code>", code)) != std::string::npos;
         });
}

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

HttpRequest S3Writer::request_for(const std::string& key, const char* method) const {
  HttpRequest request;
  request.shown = bucket_->shown_key(key);
  request.method = method;
  request.most_body_bytes = kMostAnswerBytes;
  request.cancelled = cancelled_;
  return request;
}

Error S3Writer::refused(const HttpAnswer& answer, const HttpRequest& request) const {
  if (answer.status == 404 && answer.body.find("<Code>NoSuchUpload<") != std::string::npos) {
    return {Code::kRemote,
            printable(request.shown) + translated(": somebody removed its upload while it was sent "
                                                  "('shardwright clean', or a rule of "
                                                  "the bucket does); run the command again"),
            0};
  }
  return refusal(answer, request.shown, bucket_->way_in("write to"), "written to");
}

Status S3Writer::pause(int turn) const {
  constexpr std::chrono::milliseconds kNap{50};
  for (int naps = 5 << turn; naps > 0; --naps) {
    if (cancelled_ != nullptr && *cancelled_) {
      return fail(Code::kCancelled, "{}: stopped", printable(bucket_->name()));
    }
    std::this_thread::sleep_for(kNap);
  }
  return {};
}

Result<std::string> S3Writer::begin(const std::string& key) {
  HttpRequest request = request_for(key, "POST");
  request.headers.emplace_back("Content-Type: application/octet-stream");
  const auto answer = bucket_->ask(request, key, "uploads=");
  if (!answer || answer->tries > 0) has_repeated_ = true;
  if (!answer) return std::unexpected(answer.error());
  if (!answer->is_good()) return std::unexpected(refused(*answer, request));
  auto id = parse_new_upload(answer->body);
  if (!id) {
    has_repeated_ = true;
    return std::unexpected(std::move(id).error().within(printable(request.shown)));
  }
  return id;
}

Result<HttpAnswer> S3Writer::upload_file(HttpRequest& request, const std::string& key,
                                         const std::string& query, const ReadableFile& file) const {
  request.upload = &file;
  // With it the server notices what changed on the way.
  const std::string hash = SW_TRY(sha256_of(file));
  for (int turn = 0;; ++turn) {
    HttpAnswer answer = SW_TRY(bucket_->ask(request, key, query, hash));
    if (answer.is_good()) return answer;
    if (turn + 1 >= kMostTurns || !is_passing_refusal(answer)) {
      return std::unexpected(refused(answer, request));
    }
    SW_TRY(pause(turn));
  }
}

Result<std::string> S3Writer::send(const S3Upload& upload, std::uint64_t number,
                                   const ReadableFile& part) const {
  HttpRequest request = request_for(upload.key, "PUT");
  const std::string query =
      fmt::format("partNumber={}&uploadId={}", number, percent_encoded(upload.id, true));
  const HttpAnswer answer = SW_TRY(upload_file(request, upload.key, query, part));
  std::string tag = answer.header("etag");
  if (!tag.empty()) return tag;
  return fail(Code::kRemote, "{}: the server gives no ETag for a part", printable(request.shown));
}

Status S3Writer::complete(const S3Upload& upload, const std::vector<std::string>& parts,
                          std::uint64_t bytes) const {
  HttpRequest request = request_for(upload.key, "POST");
  request.headers.emplace_back("Content-Type: application/xml");
  request.patience = kPatienceToComplete;
  std::string& text = request.text;
  text = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    fmt::format_to(std::back_inserter(text),
                   "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                   xml_escaped(parts[i]));
  }
  text += "</CompleteMultipartUpload>";
  Sha256 hash;
  hash.update(as_bytes(text));
  const std::string digest = hash.finish();
  const std::string query = "uploadId=" + percent_encoded(upload.id, true);
  for (int turn = 0;; ++turn) {
    const HttpAnswer answer = SW_TRY(bucket_->ask(request, upload.key, query, digest));
    // An earlier try may have done it, and its answer was lost.
    const bool may_be_done = answer.status == 404 && (turn > 0 || answer.tries > 0);
    if (may_be_done && check_size(upload.key, bytes)) return {};
    if (!answer.is_good() && !is_passing_refusal(answer)) {
      return std::unexpected(refused(answer, request));
    }
    std::string why = translated("HTTP status {}", answer.status);
    if (answer.is_good()) {
      const auto completion = parse_completion(answer.body);
      if (completion && completion->error.empty()) return check_size(upload.key, bytes);
      why = completion ? printable(completion->error + ": " + completion->reason)
                       : completion.error().message;
      if (completion && !is_passing_code(completion->error)) turn = kMostTurns;
    }
    if (turn + 1 >= kMostTurns) {
      return fail(Code::kRemote, "{}: the server can't put its parts together: {}",
                  printable(request.shown), why);
    }
    SW_TRY(pause(turn));
  }
}

Status S3Writer::check_size(const std::string& key, std::uint64_t bytes) const {
  HttpRequest request = request_for(key, "");
  request.is_head = true;
  const HttpAnswer answer = SW_TRY(bucket_->ask(request, key, {}));
  if (!answer.is_good()) return std::unexpected(refused(answer, request));
  const std::string length = answer.header("content-length");
  if (length == std::to_string(bytes)) return {};
  return fail(Code::kRemote, "{}: found {} bytes on the server, expected the {} that were sent",
              printable(request.shown), printable(length), bytes);
}

Status S3Writer::abort(const S3Upload& upload) const {
  HttpRequest request = request_for(upload.key, "DELETE");
  request.goes_on = true;
  const HttpAnswer answer =
      SW_TRY(bucket_->ask(request, upload.key, "uploadId=" + percent_encoded(upload.id, true)));
  const bool is_gone = answer.status == 404;
  if (!answer.is_good() && !is_gone) return std::unexpected(refused(answer, request));
  return {};
}

Status S3Writer::put(const std::string& key, const ReadableFile& file) const {
  HttpRequest request = request_for(key, "PUT");
  request.headers.emplace_back("Content-Type: application/octet-stream");
  SW_TRY(upload_file(request, key, {}, file));
  // What stands between may say yes to anything.
  return check_size(key, file.size());
}

Status S3Writer::remove(const std::string& key) const {
  HttpRequest request = request_for(key, "DELETE");
  request.goes_on = true;
  const HttpAnswer answer = SW_TRY(bucket_->ask(request, key, {}));
  if (!answer.is_good()) return std::unexpected(refused(answer, request));
  return {};
}

Result<std::vector<S3Upload>> S3Writer::uploads(const std::string& prefix, bool goes_on) const {
  std::vector<S3Upload> found;
  std::set<std::pair<std::string, std::string>> known;
  int barren = 0;
  S3UploadList page;
  do {
    HttpRequest request = request_for(prefix, "");
    request.goes_on = goes_on;
    // In the order in which they are signed.
    std::string query;
    if (!page.next_key.empty()) query += "key-marker=" + percent_encoded(page.next_key, true) + "&";
    query += "prefix=" + percent_encoded(prefix, true);
    if (!page.next_key.empty()) {
      query += "&upload-id-marker=" + percent_encoded(page.next_id, true);
    }
    query += "&uploads=";
    const HttpAnswer answer = SW_TRY(bucket_->ask(request, "", query));
    if (!answer.is_good()) {
      return std::unexpected(refusal(answer, request.shown, bucket_->way_in("list")));
    }
    auto next = parse_upload_list(answer.body);
    if (!next) return std::unexpected(std::move(next).error().within(printable(request.shown)));
    const bool is_again = next->next_key == page.next_key && next->next_id == page.next_id;
    if (!next->next_key.empty() && is_again) {
      return fail(Code::kRemote, "{}: the server gives the same page of its uploads again",
                  printable(request.shown));
    }
    page = *std::move(next);
    const std::size_t known_before = known.size();
    for (S3Upload& upload : page.uploads) {
      known.emplace(upload.key, upload.id);
      if (upload.key.starts_with(prefix)) found.push_back(std::move(upload));
    }
    if (found.size() > kMostUploads) {
      return fail(Code::kLimit, "{}: found more than {} unfinished uploads",
                  printable(request.shown), kMostUploads);
    }
    barren = known.size() > known_before ? 0 : barren + 1;
    if (barren > S3Bucket::kMostBarrenPages && !page.next_key.empty()) {
      return fail(Code::kRemote,
                  "{}: the server's list of uploads has no end: {} pages in a row bring nothing "
                  "new",
                  printable(request.shown), barren);
    }
  } while (!page.next_key.empty());
  return found;
}

}  // namespace shardwright
