// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_listing.h"

#include <expat.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "base/fail.h"
#include "base/text.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostTextBytes = 8192;
constexpr std::size_t kDeepestElement = 16;

// A space may be a plus sign there; a plus sign never is.
Result<std::string> decoded(std::string text) {
  std::ranges::replace(text, '+', ' ');
  return percent_decoded(text);
}

/// What expat tells, gathered. Only these places count: `Contents/Key` is one, an owner's is none.
class ListingBuilder {
 public:
  static void on_start(void* self, const char* name, const char** /*attributes*/) {
    static_cast<ListingBuilder*>(self)->start(name);
  }
  static void on_end(void* self, const char* /*name*/) {
    static_cast<ListingBuilder*>(self)->end();
  }
  static void on_text(void* self, const char* bytes, int count) {
    static_cast<ListingBuilder*>(self)->text_.append(bytes, static_cast<std::size_t>(count));
  }

  Result<S3Listing> take() {
    if (!wrong_.empty()) return fail(Code::kRemote, "{}", wrong_);
    if (is_truncated_ && listing_.next.empty()) {
      return fail(Code::kRemote, "a listing has more pages and doesn't say how they are called");
    }
    if (!is_truncated_) listing_.next.clear();
    if (is_encoded_) {
      for (S3Listing::Object& object : listing_.objects) {
        object.key = SW_TRY(decoded(object.key));
      }
      for (std::string& folder : listing_.folders) folder = SW_TRY(decoded(folder));
    }
    return std::move(listing_);
  }

 private:
  void start(std::string_view name) {
    name = name.substr(name.rfind(':') + 1);  // without the name of a namespace
    if (path_.size() >= kDeepestElement) {
      wrong_ = "a listing is nested too deep";
      return;
    }
    path_.emplace_back(name);
    text_.clear();
    if (place() == "ListBucketResult") is_listing_ = true;
    if (place() == "ListBucketResult/Contents") listing_.objects.emplace_back();
  }

  void end() {
    if (path_.empty()) return;
    const std::string where = place();
    if (text_.size() > kMostTextBytes) wrong_ = "a listing has a text that is too long";
    if (where == "ListBucketResult/Contents/Key") listing_.objects.back().key = text_;
    if (where == "ListBucketResult/Contents/ETag") listing_.objects.back().tag = text_;
    if (where == "ListBucketResult/Contents/Size") take_size();
    if (where == "ListBucketResult/CommonPrefixes/Prefix") listing_.folders.push_back(text_);
    if (where == "ListBucketResult/NextContinuationToken") listing_.next = text_;
    if (where == "ListBucketResult/IsTruncated") is_truncated_ = text_ == "true";
    if (where == "ListBucketResult/EncodingType") is_encoded_ = text_ == "url";
    path_.pop_back();
    text_.clear();
    if (path_.empty() && !is_listing_) wrong_ = "found no listing of a bucket";
  }

  void take_size() {
    std::string_view rest = text_;
    const auto size = take_number(rest);
    if (size && rest.empty() && *size >= 0) {
      listing_.objects.back().size = static_cast<std::uint64_t>(*size);
    } else {
      wrong_ = fmt::format("a listing says '{}' where a size belongs", printable(text_));
    }
  }

  [[nodiscard]] std::string place() const {
    std::string result;
    for (const std::string& name : path_) result += (result.empty() ? "" : "/") + name;
    return result;
  }

  S3Listing listing_;
  std::vector<std::string> path_;
  std::string text_;
  std::string wrong_;
  bool is_listing_ = false;
  bool is_truncated_ = false;
  bool is_encoded_ = false;
};

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

}  // namespace

Result<S3Listing> parse_s3_listing(std::string_view xml) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, FreeParser> parser(
      XML_ParserCreate(nullptr));
  if (!parser) return fail(Code::kOutOfMemory, "no memory to read a listing");
  ListingBuilder builder;
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(parser.get(), &ListingBuilder::on_start, &ListingBuilder::on_end);
  XML_SetCharacterDataHandler(parser.get(), &ListingBuilder::on_text);
  if (xml.size() > (std::size_t{1} << 30) ||
      XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), XML_TRUE) !=
          XML_STATUS_OK) {
    return fail(Code::kRemote, "a listing is no XML: {} at byte {}",
                XML_ErrorString(XML_GetErrorCode(parser.get())),
                XML_GetCurrentByteIndex(parser.get()));
  }
  return builder.take();
}

}  // namespace shardwright
