// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_store.h"

#include <map>
#include <mutex>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "remote/s3_listing.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostListingBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMostObjects = 1'000'000;  // in one folder
constexpr std::string_view kToRead = "list and read";

// A weak ETag never matches, and without its quotes none does.
bool is_strong(std::string_view tag) { return tag.starts_with('"'); }

std::unexpected<Error> foreign_key(const std::string& shown, const std::string& key) {
  return fail(Code::kRemote, "{}: the server lists '{}', which is none of this folder's names",
              printable(shown), printable(key));
}

Result<S3Listing> page_of(const S3Bucket& bucket, const std::string& prefix,
                          const std::string& token, const std::string& shown) {
  HttpRequest request;
  request.shown = shown;
  request.most_body_bytes = kMostListingBytes;
  // In the order in which they are signed.
  std::string query;
  if (!token.empty()) query += "continuation-token=" + percent_encoded(token, true) + "&";
  query += "delimiter=%2F&encoding-type=url&list-type=2&prefix=" + percent_encoded(prefix, true);
  const HttpAnswer answer = SW_TRY(bucket.ask(request, "", query));
  if (!answer.is_good()) return std::unexpected(refusal(answer, shown, bucket.way_in(kToRead)));
  auto listing = parse_s3_listing(answer.body);
  if (!listing) return std::unexpected(std::move(listing).error().within(printable(shown)));
  return listing;
}

class S3Store final : public RemoteStore {
 public:
  explicit S3Store(std::unique_ptr<S3Bucket> bucket) : bucket_(std::move(bucket)) {}

  const std::string& name() const override { return bucket_->name(); }

  Result<std::vector<DirectoryEntry>> list(std::string_view folder) const override {
    std::vector<DirectoryEntry> entries =
        SW_TRY(list_s3_folder(*bucket_, folder, [&](const std::string& name, RemoteObject object) {
          remember(folder, name, std::move(object));
        }));
    if (!entries.empty()) return entries;
    return fail(Code::kNotFound, "{}: no object's name begins so",
                printable(bucket_->shown_name(folder)));
  }

  Result<RemoteObject> find(std::string_view path) const override {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = seen_.find(path);
      // Not every server lists ETags as it gives them with the objects.
      if (found != seen_.end() && is_strong(found->second.tag)) return found->second;
    }
    return look(path);
  }

  Result<RemoteObject> look(std::string_view path) const override {
    HttpRequest request;
    request.shown = bucket_->shown_name(path);
    request.is_head = true;
    const HttpAnswer answer = SW_TRY(bucket_->ask(request, bucket_->key_of(path), {}));
    if (!answer.is_good())
      return std::unexpected(refusal(answer, request.shown, bucket_->way_in(kToRead)));
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
    request.shown = bucket_->shown_name(path);
    request.into = buffer;
    request.offset = offset;
    request.total = object.size;
    request.tag = object.tag;
    if (is_strong(object.tag)) request.headers.push_back("If-Match: " + object.tag);
    const HttpAnswer answer = SW_TRY(bucket_->ask(request, bucket_->key_of(path), {}));
    if (!answer.is_good())
      return std::unexpected(refusal(answer, request.shown, bucket_->way_in(kToRead)));
    const std::string tag = answer.header("etag");
    if (tag == object.tag) return {};
    return fail(Code::kSourceChanged,
                "{}: changed while it was read: its ETag is {} now, {} when it was listed; run the "
                "command again once nothing writes to this checkpoint any more",
                printable(request.shown), printable(tag), printable(object.tag));
  }

 private:
  void remember(std::string_view folder, const std::string& name, RemoteObject object) const {
    std::string path = folder.empty() ? name : fmt::format("{}/{}", folder, name);
    const std::scoped_lock lock(mutex_);
    seen_.insert_or_assign(std::move(path), std::move(object));
  }

  std::unique_ptr<S3Bucket> bucket_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::map<std::string, RemoteObject, std::less<>> seen_;
};

}  // namespace

Result<std::vector<DirectoryEntry>> list_s3_folder(
    const S3Bucket& bucket, std::string_view folder,
    const std::function<void(const std::string&, RemoteObject)>& on_object) {
  const std::string shown = bucket.shown_name(folder);
  const std::string prefix = bucket.prefix_of(folder);
  std::vector<DirectoryEntry> entries;
  std::set<std::string> known;
  int barren = 0;
  std::string token;
  do {
    const std::size_t known_before = known.size();
    const S3Listing page = SW_TRY(page_of(bucket, prefix, token, shown));
    for (const S3Listing::Object& object : page.objects) {
      if (!object.key.starts_with(prefix)) return foreign_key(shown, object.key);
      const std::string name = object.key.substr(prefix.size());
      // A folder may have an object of its own, without a name in it.
      if (name.empty()) continue;
      known.insert(name);
      entries.push_back({name, false, object.size});
      if (on_object) on_object(name, {object.size, object.tag});
    }
    for (const std::string& inner : page.folders) {
      if (!inner.starts_with(prefix)) return foreign_key(shown, inner);
      std::string name = inner.substr(prefix.size());
      if (name.ends_with('/')) name.pop_back();
      known.insert(name);
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
    // A page may be empty and have others behind it, but not without an end.
    barren = known.size() > known_before ? 0 : barren + 1;
    if (barren > S3Bucket::kMostBarrenPages && !page.next.empty()) {
      return fail(Code::kRemote,
                  "{}: the server's listing has no end: {} pages in a row bring nothing new",
                  printable(shown), barren);
    }
    token = page.next;
  } while (!token.empty());
  return entries;
}

std::unique_ptr<RemoteStore> make_s3_store(std::unique_ptr<S3Bucket> bucket) {
  return std::make_unique<S3Store>(std::move(bucket));
}

}  // namespace shardwright
