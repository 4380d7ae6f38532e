// SPDX-License-Identifier: Apache-2.0
#include "remote/web_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "base/text.h"
#include "remote/web_index.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostListBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMostShardIndexBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostTrackerBytes = 64;
constexpr std::size_t kMostWebNames = 20'000;
constexpr std::string_view kTrackerFile = "latest_checkpointed_iteration.txt";

std::optional<std::uint64_t> size_in(std::string_view text) {
  const auto size = take_number(text);
  if (!size || !text.empty() || *size < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*size);
}

// The whole file's size, as an answer to a request for its first byte tells it: `bytes 0-0/7`, or
// `bytes */0` where there is none.
std::optional<std::uint64_t> size_told_with(const HttpAnswer& answer) {
  if (answer.status == 200) return size_in(answer.header("content-length"));
  const std::string range = answer.header("content-range");
  return size_in(std::string_view(range).substr(range.rfind('/') + 1));
}

class WebStore final : public RemoteStore {
 public:
  WebStore(std::shared_ptr<HttpClient> client, Url url, std::string shown)
      : client_(std::move(client)), url_(std::move(url)), name_(std::move(shown)) {
    while (url_.path.ends_with('/')) url_.path.pop_back();
  }

  const std::string& name() const override { return name_; }
  bool tells_all(std::string_view folder) const override {
    const std::scoped_lock lock(mutex_);
    return listed_.contains(folder);
  }

  Result<std::vector<DirectoryEntry>> list(std::string_view folder) const override {
    const std::string prefix = folder.empty() ? std::string() : fmt::format("{}/", folder);
    WebNames names = SW_TRY(shown_names(folder));
    const bool is_listed = !names.files.empty() || !names.folders.empty();
    if (is_listed) {
      const std::scoped_lock lock(mutex_);
      listed_.emplace(folder);
    } else {
      for (const std::string_view name : known_web_names()) names.files.emplace_back(name);
    }
    std::vector<DirectoryEntry> entries;
    SW_TRY(look_at(prefix, names.files, is_listed, entries));
    if (is_listed) SW_TRY(look_at(prefix, hidden_names(names.files), false, entries));
    if (!is_listed) SW_TRY(add_named(prefix, entries));
    for (std::string& name : names.folders) entries.push_back({std::move(name), true, 0});
    if (!entries.empty()) return entries;
    return fail(Code::kNotFound,
                "{}{}{}: the server shows no list of this folder, and none of the files is there "
                "that a checkpoint begins with",
                printable(name_), folder.empty() ? "" : "/", printable(folder));
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
    HttpRequest request = request_for(path);
    request.is_head = true;
    HttpAnswer answer = SW_TRY(client_->ask(request));
    auto size = size_in(answer.header("content-length"));
    // Not every server answers HEAD: the first byte tells of the whole too.
    if (answer.status == 405 || answer.status == 501 || (answer.is_good() && !size)) {
      request.is_head = false;
      request.headers.emplace_back("Range: bytes=0-0");
      request.most_body_bytes = 1;
      answer = SW_TRY(client_->ask(request));
      size = size_told_with(answer);
      if (answer.status == 416 && !size && SW_TRY(is_empty(path))) size = 0;
    }
    const bool has_no_byte = answer.status == 416 && size == 0;
    if (!answer.is_good() && !has_no_byte) {
      return std::unexpected(refusal(answer, request.shown, {}));
    }
    if (!size) {
      return fail(Code::kRemote, "{}: the server doesn't tell how long it is",
                  printable(request.shown));
    }
    RemoteObject object{*size, tag_of(answer)};
    const std::scoped_lock lock(mutex_);
    seen_.try_emplace(std::string(path), object);
    return object;
  }

  Status read(std::string_view path, const RemoteObject& object, std::uint64_t offset,
              std::span<std::byte> buffer) const override {
    if (buffer.empty()) return {};
    HttpRequest request = request_for(path);
    request.into = buffer;
    request.offset = offset;
    request.total = object.size;
    // Not every server that tags parts of a file tags its answer to HEAD.
    request.tag = object.tag.empty() ? first_tag(path, "") : object.tag;
    // A weak ETag never matches.
    if (request.tag.starts_with('"')) request.headers.push_back("If-Match: " + request.tag);
    const HttpAnswer answer = SW_TRY(client_->ask(request));
    if (!answer.is_good()) return std::unexpected(refusal(answer, request.shown, {}));
    if (!request.tag.empty()) return {};
    const std::string tag = tag_of(answer);
    const std::string first = first_tag(path, tag);
    if (tag == first) return {};
    return fail(Code::kSourceChanged,
                "{}: changed while it was read: the server calls it {} now, {} when it was "
                "opened; run the command again once nothing writes to this checkpoint any more",
                printable(request.shown), printable(tag), printable(first));
  }

 private:
  [[nodiscard]] HttpRequest request_for(std::string_view path) const {
    HttpRequest request;
    request.shown = fmt::format("{}/{}", name_, path);
    request.url = fmt::format("{}{}/{}", url_.origin(), url_.path, percent_encoded(path));
    return request;
  }

  // Whether a file has no byte, which a server may refuse to give the first byte of without a word.
  Result<bool> is_empty(std::string_view path) const {
    HttpRequest request = request_for(path);
    request.most_body_bytes = 1;
    const auto answer = client_->ask(request);
    if (!answer && answer.error().code == Code::kCancelled) return std::unexpected(answer.error());
    return answer && answer->is_good() && answer->body.empty();
  }

  // The tag of the first part of a file that was read; `tag`, where no part was read before.
  std::string first_tag(std::string_view path, const std::string& tag) const {
    const std::scoped_lock lock(mutex_);
    const auto found = first_tags_.find(path);
    if (found != first_tags_.end()) return found->second;
    if (!tag.empty()) first_tags_.emplace(path, tag);
    return tag;
  }

  // What nginx and Apache leave out of their lists, and deliver all the same.
  static std::vector<std::string> hidden_names(const std::vector<std::string>& listed) {
    std::vector<std::string> hidden;
    for (const std::string_view name : known_web_names()) {
      const bool is_listed = std::ranges::find(listed, name) != listed.end();
      if (name.starts_with('.') && !is_listed) hidden.emplace_back(name);
    }
    return hidden;
  }

  // The server's own list of a folder; nothing where it shows none.
  Result<WebNames> shown_names(std::string_view folder) const {
    HttpRequest request = request_for(folder.empty() ? "" : fmt::format("{}/", folder));
    request.most_body_bytes = kMostListBytes;
    const HttpAnswer answer = SW_TRY(client_->ask(request));
    if (!answer.is_good() || !answer.header("content-type").starts_with("text/html")) {
      return WebNames();
    }
    const Url where = SW_TRY(parse_url(answer.target));
    WebNames names = names_on_page(answer.body, where.path);
    if (names.files.size() > kMostWebNames) {
      return fail(Code::kLimit, "{}: found {} files in one folder, limit {}",
                  printable(request.shown), names.files.size(), kMostWebNames);
    }
    return names;
  }

  // Sizes of those that are there. Of names that nobody promised, a refusal says as little as a
  // file that is not there: that is how some servers keep quiet about what they have.
  Status look_at(const std::string& prefix, const std::vector<std::string>& names, bool is_promised,
                 std::vector<DirectoryEntry>& entries) const {
    const auto look = [&](std::size_t i) { return find(prefix + names[i]); };
    const auto take = [&](std::size_t i, const Result<RemoteObject>& object) -> Status {
      if (object) {
        entries.push_back({names[i], false, object->size});
        return {};
      }
      const Code code = object.error().code;
      if (is_promised) {
        entries.push_back({names[i], false, 0, object.error()});
      } else if (code != Code::kNotFound && code != Code::kPermission) {
        return std::unexpected(object.error());
      }
      return {};
    };
    return read_ahead(names.size(), look, take);
  }

  // The files of the ranks behind this one's, up to the first that isn't there.
  Status add_ranks_behind(const std::string& prefix, const std::string& file,
                          std::vector<DirectoryEntry>& entries) const {
    for (auto next = next_rank_file(file); next; next = next_rank_file(*next)) {
      const std::size_t known = entries.size();
      SW_TRY(look_at(prefix, {*next}, false, entries));
      if (entries.size() == known) break;
    }
    return {};
  }

  // What the files that were found name: shards of an index, the folder of a tracker.
  Status add_named(const std::string& prefix, std::vector<DirectoryEntry>& entries) const {
    const std::vector<DirectoryEntry> known = entries;
    for (const DirectoryEntry& entry : known) {
      if (entry.name.ends_with(".index.json")) {
        const std::string text = SW_TRY(text_of(prefix + entry.name, kMostShardIndexBytes));
        const auto files = files_in_index(text, entry.name);
        if (files) SW_TRY(look_at(prefix, *files, false, entries));
      }
      SW_TRY(add_ranks_behind(prefix, entry.name, entries));
      if (entry.name != kTrackerFile) continue;
      const std::string text = SW_TRY(text_of(prefix + entry.name, kMostTrackerBytes));
      std::string_view rest = text;
      if (const auto iteration = take_number(rest)) {
        entries.push_back({fmt::format("iter_{:07}", *iteration), true, 0});
      } else if (text.starts_with("release")) {
        entries.push_back({"release", true, 0});
      }
    }
    return {};
  }

  Result<std::string> text_of(const std::string& path, std::uint64_t most_bytes) const {
    HttpRequest request = request_for(path);
    request.most_body_bytes = most_bytes;
    HttpAnswer answer = SW_TRY(client_->ask(request));
    if (!answer.is_good()) return std::unexpected(refusal(answer, request.shown, {}));
    return std::move(answer.body);
  }

  std::shared_ptr<HttpClient> client_;
  Url url_;
  std::string name_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, RemoteObject, std::less<>> seen_;
  mutable std::map<std::string, std::string, std::less<>> first_tags_;
  mutable std::set<std::string, std::less<>> listed_;  // folders that the server shows a list of
};

}  // namespace

Result<std::unique_ptr<RemoteStore>> make_web_store(std::shared_ptr<HttpClient> client,
                                                    const Url& url, std::string shown) {
  if (!url.query.empty()) {
    return fail(Code::kUsage,
                "{}: found an address with a question mark, which names one page and no folder; "
                "download what it names",
                printable(shown_url(shown)));
  }
  return std::make_unique<WebStore>(std::move(client), url, std::move(shown));
}

}  // namespace shardwright
