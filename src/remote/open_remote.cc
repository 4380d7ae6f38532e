// SPDX-License-Identifier: Apache-2.0
#include "remote/open_remote.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

#include "base/fail.h"
#include "base/text.h"
#include "io/remote_path.h"
#include "remote/aws_settings.h"
#include "remote/http_client.h"
#include "remote/hub_store.h"
#include "remote/reach_bucket.h"
#include "remote/remote_directory.h"
#include "remote/s3_store.h"
#include "remote/url.h"
#include "remote/web_store.h"

namespace shardwright {
namespace {

constexpr std::string_view kHubScheme = "hf://";
constexpr std::string_view kS3Scheme = "s3://";

// One for the process: connections are used again by whatever is opened next.
struct SharedClient {
  std::mutex mutex;
  std::shared_ptr<HttpClient> client;  // null: nothing was asked for yet
  const std::atomic<bool>* cancelled = nullptr;

  static SharedClient& get() {
    static SharedClient shared;
    return shared;
  }
};

Result<std::shared_ptr<HttpClient>> shared_client() {
  SharedClient& shared = SharedClient::get();
  const std::scoped_lock lock(shared.mutex);
  if (shared.client == nullptr) {
    const HttpSettings settings = SW_TRY(HttpSettings::from_environment());
    shared.client = SW_TRY(HttpClient::open(settings));
    shared.client->obey(shared.cancelled);
  }
  return shared.client;
}

std::optional<std::string> variable_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string without_last_slashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

Result<std::unique_ptr<RemoteStore>> reach_store(const std::string& path) {
  if (path.starts_with(kS3Scheme)) return make_s3_store(SW_TRY(reach_bucket(path)));
  // What is shown with every message must not hold a password.
  const Url url = path.starts_with(kHubScheme) ? Url() : SW_TRY(parse_url(path));
  const std::shared_ptr<HttpClient> client = SW_TRY(shared_client());
  const std::string shown = without_last_slashes(path);
  const HubSettings hub = SW_TRY(HubSettings::from_environment());
  if (const auto model = SW_TRY(parse_hub_path(path, hub.endpoint))) {
    return open_hub_store(client, hub, *model, shown);
  }
  return make_web_store(client, url, shown);
}

}  // namespace

Result<std::unique_ptr<S3Bucket>> reach_bucket(const std::string& path) {
  const std::shared_ptr<HttpClient> client = SW_TRY(shared_client());
  const std::string plain = with_lower_scheme(path);
  return S3Bucket::make(client, SW_TRY(find_aws_settings(variable_of)),
                        SW_TRY(parse_s3_path(plain)), without_last_slashes(plain));
}

bool is_remote_path(std::string_view path) {
  constexpr std::array<std::string_view, 4> kSchemes = {kHubScheme, kS3Scheme, "https://",
                                                        "http://"};
  const std::string plain = with_lower_scheme(path);
  return std::ranges::any_of(kSchemes,
                             [&](std::string_view scheme) { return plain.starts_with(scheme); });
}

void stop_requests_by(const std::atomic<bool>* cancelled) {
  SharedClient& shared = SharedClient::get();
  const std::scoped_lock lock(shared.mutex);
  shared.cancelled = cancelled;
  if (shared.client != nullptr) shared.client->obey(cancelled);
}

Result<std::unique_ptr<Directory>> reach_directory(const std::string& path) {
  const std::string plain = with_lower_scheme(path);
  auto store = reach_store(plain);
  if (!store) {
    Error error = std::move(store).error();
    // Without libcurl it is as in a build without this part.
    if (error.code == Code::kNotFound && !error.message.starts_with(printable(plain))) {
      error = std::move(error).within(printable(plain));
      error.message += remote_hint(plain);
    }
    return std::unexpected(std::move(error));
  }
  return std::make_unique<RemoteDirectory>(*std::move(store));
}

bool may_be_remote_file(std::string_view path) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".safetensors", ".bin",      ".pt",   ".pth",      ".ckpt",    ".pkl",    ".pickle",
       ".distcp",      ".metadata", ".json", ".jinja",    ".txt",     ".yaml",   ".model",
       ".nemo",        ".gguf",     ".onnx", ".pdparams", ".msgpack", ".engine", ".tar"});
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return path.ends_with(ending); });
}

std::size_t end_of_remote_root(std::string_view path) {
  std::size_t words = with_lower_scheme(path).starts_with(kHubScheme) ? 2 : 1;
  std::size_t at = path.find("://") + 3;
  while (words-- > 0 && at < path.size()) {
    at = std::min(path.find('/', at), path.size());
    if (words > 0 && at < path.size()) ++at;
  }
  return at;
}

}  // namespace shardwright
