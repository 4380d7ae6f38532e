// SPDX-License-Identifier: Apache-2.0
#include "remote/hub_store.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "io/beneath.h"
#include "io/named_file.h"
#include "remote/url.h"

namespace shardwright {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostPageBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMostHubFiles = 200'000;
constexpr int kMostBarrenPages = 100;  // in a row, without another file
constexpr std::size_t kCommitDigits = 40;
constexpr std::uint64_t kMostTokenBytes = 4096;

bool is_hub_word(std::string_view word) {
  return !word.empty() && word.front() != '.' && word.size() <= 96 &&
         std::ranges::all_of(word, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::string_view take_word(std::string_view& path) {
  const std::string_view word = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(word.size() + 1, path.size()));
  return word;
}

// Of `refs/pr/1`, which is one revision in three words, or of one word.
std::string take_revision(std::string_view& path) {
  std::string revision(take_word(path));
  if (revision == "refs") {
    for (int i = 0; i < 2 && !path.empty(); ++i) {
      revision += '/';
      revision += take_word(path);
    }
  }
  return revision;
}

Result<HubPath> checked(HubPath path, std::string_view shown) {
  std::string_view rest = path.model;
  const bool is_model = is_hub_word(take_word(rest)) && is_hub_word(rest);
  const auto decoded = percent_decoded(path.revision);
  if (!is_model || !decoded || decoded->empty() || !check_relative_path(*decoded)) {
    return fail(Code::kUsage,
                "{}: names no model of the Hugging Face Hub; expected hf://OWNER/NAME, "
                "hf://OWNER/NAME@REVISION or a folder in it",
                printable(shown));
  }
  path.revision = *decoded;
  while (path.folder.ends_with('/')) path.folder.pop_back();
  if (!path.folder.empty()) SW_TRY(check_relative_path(path.folder));
  return path;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// The URL of `rel="next"` in a Link header.
std::string next_page(std::string_view link) {
  while (!link.empty()) {
    const std::size_t begin = link.find('<');
    const std::size_t end = link.find('>', begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) return {};
    const std::size_t more = std::min(link.find('<', end), link.size());
    if (link.substr(end, more - end).find("rel=\"next\"") != std::string_view::npos) {
      return std::string(link.substr(begin + 1, end - begin - 1));
    }
    link.remove_prefix(more);
  }
  return {};
}

class HubStore final : public RemoteStore {
 public:
  HubStore(std::shared_ptr<HttpClient> client, HubSettings settings, HubPath path,
           std::string shown)
      : client_(std::move(client)),
        settings_(std::move(settings)),
        path_(std::move(path)),
        name_(std::move(shown)) {}

  Status open() {
    const Json answer =
        SW_TRY(json_of(fmt::format("{}/api/models/{}/revision/{}?expand=sha", settings_.endpoint,
                                   path_.model, percent_encoded(path_.revision, true)),
                       nullptr));
    const auto sha = answer.is_object() ? answer.find("sha") : answer.end();
    if (sha == answer.end() || !sha->is_string()) return malformed("no commit");
    commit_ = sha->get<std::string>();
    if (commit_.size() != kCommitDigits || !is_hub_word(commit_)) return malformed("no commit");
    return read_tree();
  }

  const std::string& name() const override { return name_; }

  Result<std::vector<DirectoryEntry>> list(std::string_view folder) const override {
    const std::string prefix = folder.empty() ? std::string() : fmt::format("{}/", folder);
    std::vector<DirectoryEntry> entries;
    for (auto file = files_.lower_bound(prefix); file != files_.end(); ++file) {
      std::string_view rest = file->first;
      if (!rest.starts_with(prefix)) break;
      rest.remove_prefix(prefix.size());
      const std::size_t slash = rest.find('/');
      const bool is_folder = slash != std::string_view::npos;
      const std::string_view name = rest.substr(0, slash);
      if (!entries.empty() && entries.back().name == name && entries.back().is_directory) continue;
      entries.push_back({std::string(name), is_folder, is_folder ? 0 : file->second.size});
    }
    if (entries.empty()) return not_there(folder);
    return entries;
  }

  Result<RemoteObject> look(std::string_view path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return not_there(path);
    return found->second;
  }

  Status read(std::string_view path, const RemoteObject& object, std::uint64_t offset,
              std::span<std::byte> buffer) const override {
    if (buffer.empty()) return {};
    HttpRequest request;
    request.shown = fmt::format("{}/{}", name_, path);
    request.url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, path_.model, commit_,
                              percent_encoded(in_repository(path)));
    request.known_target = target_of(path);
    request.bearer = settings_.token;
    request.into = buffer;
    request.offset = offset;
    request.total = object.size;
    const HttpAnswer answer = SW_TRY(client_->ask(request));
    if (!answer.is_good()) return std::unexpected(refusal(answer, request.shown, way_in()));
    if (answer.target != request.url) keep_target(path, answer.target);
    return {};
  }

 private:
  [[nodiscard]] std::string in_repository(std::string_view path) const {
    if (path_.folder.empty()) return std::string(path);
    return path.empty() ? path_.folder : fmt::format("{}/{}", path_.folder, path);
  }

  [[nodiscard]] std::string way_in() const {
    if (!settings_.token.empty()) {
      return translated("; see whether your account may read {}/{}", settings_.endpoint,
                        path_.model);
    }
    return "; if the model is private or asks for consent, set HF_TOKEN or run 'hf auth login'";
  }

  [[nodiscard]] std::unexpected<Error> malformed(std::string_view what) const {
    return fail(Code::kRemote, "{}: {} answers with what is no description of a model: {}",
                printable(name_), settings_.endpoint, what);
  }

  [[nodiscard]] std::unexpected<Error> not_there(std::string_view path) const {
    return fail(Code::kNotFound, "{}{}{}: not there in commit {}", printable(name_),
                path.empty() ? "" : "/", printable(path), commit_);
  }

  Result<Json> json_of(const std::string& url, std::string* next) const {
    HttpRequest request;
    request.shown = name_;
    request.url = url;
    request.bearer = settings_.token;
    request.most_body_bytes = kMostPageBytes;
    const HttpAnswer answer = SW_TRY(client_->ask(request));
    if (!answer.is_good()) return std::unexpected(refusal(answer, name_, way_in()));
    if (next != nullptr) *next = next_page(answer.header("link"));
    return parse_json(answer.body, name_);
  }

  Status read_tree() {
    std::string folder = in_repository("");
    std::string url =
        fmt::format("{}/api/models/{}/tree/{}{}{}?recursive=true", settings_.endpoint, path_.model,
                    commit_, folder.empty() ? "" : "/", percent_encoded(folder));
    const Url endpoint = SW_TRY(parse_url(settings_.endpoint));
    int barren = 0;
    while (!url.empty()) {
      std::string next;
      const Json page = SW_TRY(json_of(url, &next));
      if (!page.is_array()) return malformed("no list of files");
      const std::size_t known = files_.size();
      for (const Json& entry : page) SW_TRY(add(entry));
      if (files_.size() > kMostHubFiles) return malformed("too many files");
      // A page may be empty and have others behind it, but not without an end.
      barren = files_.size() > known ? 0 : barren + 1;
      if (barren > kMostBarrenPages) return malformed("pages without an end");
      if (next.empty()) break;
      const auto target = parse_url(next);
      if (!target || target->origin() != endpoint.origin()) {
        return malformed("the next page of its files lies elsewhere");
      }
      url = next;
    }
    if (files_.empty()) return not_there("");
    return {};
  }

  Status add(const Json& entry) {
    if (!entry.is_object()) return malformed("no file");
    const auto type = entry.find("type");
    const auto path = entry.find("path");
    if (type == entry.end() || path == entry.end() || !path->is_string()) {
      return malformed("a file without a path");
    }
    if (*type != "file") return {};
    const auto size = entry.find("size");
    const auto oid = entry.find("oid");
    if (size == entry.end() || !size->is_number_unsigned() || oid == entry.end() ||
        !oid->is_string()) {
      return malformed("a file without a size");
    }
    std::string_view below = path->get_ref<const std::string&>();
    if (!path_.folder.empty()) {
      const std::string prefix = path_.folder + "/";
      if (!below.starts_with(prefix)) return {};  // a file, where a folder was named
      below.remove_prefix(prefix.size());
    }
    SW_TRY(check_relative_path(below));
    files_[std::string(below)] = {size->get<std::uint64_t>(), oid->get<std::string>()};
    return {};
  }

  [[nodiscard]] std::string target_of(std::string_view path) const {
    const std::scoped_lock lock(mutex_);
    const auto found = targets_.find(path);
    return found == targets_.end() ? std::string() : found->second;
  }
  void keep_target(std::string_view path, const std::string& target) const {
    const std::scoped_lock lock(mutex_);
    targets_[std::string(path)] = target;
  }

  std::shared_ptr<HttpClient> client_;
  HubSettings settings_;
  HubPath path_;
  std::string name_;
  std::string commit_;
  std::map<std::string, RemoteObject, std::less<>> files_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string, std::less<>> targets_;  // where files really lie
};

}  // namespace

Result<std::optional<HubPath>> parse_hub_path(std::string_view path, std::string_view endpoint) {
  constexpr std::string_view kScheme = "hf://";
  const std::string_view shown = path;
  HubPath found{.model = {}, .revision = "main", .folder = {}};
  if (path.starts_with(kScheme)) {
    path.remove_prefix(kScheme.size());
    const std::string_view owner = take_word(path);
    const std::size_t at = path.find('@');
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (at < slash) {
      found.model = fmt::format("{}/{}", owner, path.substr(0, at));
      path.remove_prefix(at + 1);
      found.revision = take_revision(path);
    } else {
      found.model = fmt::format("{}/{}", owner, take_word(path));
    }
    found.folder = path;
    return SW_TRY(checked(std::move(found), shown));
  }
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  if (!path.starts_with(endpoint) || !path.substr(endpoint.size()).starts_with('/')) {
    return std::optional<HubPath>();
  }
  path = path.substr(endpoint.size() + 1);
  path = path.substr(0, path.find_first_of("?#"));
  const std::string_view owner = take_word(path);
  found.model = fmt::format("{}/{}", owner, take_word(path));
  const std::string_view kind = path.substr(0, path.find('/'));
  if (kind == "tree" || kind == "blob" || kind == "resolve" || kind == "raw") {
    take_word(path);
    found.revision = take_revision(path);
  }
  found.folder = SW_TRY(percent_decoded(path));
  return SW_TRY(checked(std::move(found), shown));
}

Result<HubSettings> HubSettings::from_environment() {
  HubSettings settings;
  settings.endpoint = variable("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = "https://huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  static_cast<void>(SW_TRY(parse_url(settings.endpoint)));
  settings.token = variable("HF_TOKEN");
  if (settings.token.empty()) settings.token = variable("HUGGING_FACE_HUB_TOKEN");  // its old name
  if (settings.token.empty()) {
    std::string path = variable("HF_TOKEN_PATH");
    if (path.empty() && !variable("HF_HOME").empty()) path = variable("HF_HOME") + "/token";
    if (path.empty()) path = variable("HOME") + "/.cache/huggingface/token";
    if (auto text = read_named_file(path, kMostTokenBytes)) settings.token = *std::move(text);
  }
  // A line end would begin another header.
  std::erase_if(settings.token, [](char c) { return static_cast<unsigned char>(c) <= ' '; });
  return settings;
}

Result<std::unique_ptr<RemoteStore>> open_hub_store(std::shared_ptr<HttpClient> client,
                                                    const HubSettings& settings,
                                                    const HubPath& path, std::string shown) {
  auto store = std::make_unique<HubStore>(std::move(client), settings, path, std::move(shown));
  SW_TRY(store->open());
  return store;
}

}  // namespace shardwright
