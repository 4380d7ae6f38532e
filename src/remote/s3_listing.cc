// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_listing.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "remote/url.h"
#include "remote/xml_texts.h"

namespace shardwright {
namespace {

// A space may be a plus sign there; a plus sign never is.
Result<std::string> decoded(std::string text) {
  std::ranges::replace(text, '+', ' ');
  return percent_decoded(text);
}

Result<std::uint64_t> listed_size(const std::string& text) {
  std::string_view rest = text;
  const auto size = take_number(rest);
  if (size && rest.empty() && *size >= 0) return static_cast<std::uint64_t>(*size);
  return fail(Code::kRemote, "a listing says '{}' where a size belongs", printable(text));
}

}  // namespace

// Only these places count: `Contents/Key` is one, an owner's is none.
Result<S3Listing> parse_s3_listing(std::string_view xml) {
  S3Listing listing;
  S3Listing::Object object;
  std::string next;
  bool is_truncated = false;
  bool is_encoded = false;
  const std::vector<XmlText> texts = SW_TRY(xml_texts(xml, "a listing"));
  if (texts.empty() || texts.back().place != "ListBucketResult") {
    return fail(Code::kRemote, "found no listing of a bucket");
  }
  for (const auto& [place, text] : texts) {
    if (place == "ListBucketResult/Contents/Size") object.size = SW_TRY(listed_size(text));
    if (place == "ListBucketResult/IsTruncated") is_truncated = text == "true";
    if (place == "ListBucketResult/EncodingType") is_encoded = text == "url";
    if (place == "ListBucketResult/Contents/Key") object.key = text;
    if (place == "ListBucketResult/Contents/ETag") object.tag = text;
    if (place == "ListBucketResult/CommonPrefixes/Prefix") {
      listing.folders.push_back(text);
    }
    if (place == "ListBucketResult/NextContinuationToken") next = text;
    if (place == "ListBucketResult/Contents") {
      listing.objects.push_back(std::exchange(object, {}));
    }
  }
  if (is_truncated && next.empty()) {
    return fail(Code::kRemote, "a listing has more pages and doesn't say how they are called");
  }
  if (is_truncated) listing.next = std::move(next);
  if (is_encoded) {
    for (S3Listing::Object& one : listing.objects) one.key = SW_TRY(decoded(one.key));
    for (std::string& folder : listing.folders) folder = SW_TRY(decoded(folder));
  }
  return listing;
}

}  // namespace shardwright
