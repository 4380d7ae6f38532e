// SPDX-License-Identifier: Apache-2.0
#include "io/remote_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

struct Store {
  std::string_view scheme;
  std::string_view download;  ///< what fetches it, with its URL for {}
};

constexpr std::array kStores = {
    Store{"s3", "aws s3 sync {} DIR"},
    Store{"gs", "gcloud storage rsync -r {} DIR"},
    Store{"oss", "ossutil cp -r {} DIR"},
    Store{"az", "azcopy copy {} DIR --recursive"},
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Of `s3://bucket/run`; empty where it is no URL.
std::string_view scheme_of(std::string_view path) {
  const std::size_t end = path.find("://");
  if (end == std::string_view::npos || end < 2) return {};
  const std::string_view scheme = path.substr(0, end);
  const bool is_one = std::ranges::all_of(
      scheme, [](char c) { return is_word(c) || c == '+' || c == '-' || c == '.'; });
  return is_one ? scheme : std::string_view();
}

// Of `s3:/bucket/run`, which lacks a slash; empty where nothing is meant but a local path.
std::string_view mistyped_scheme(std::string_view path) {
  constexpr std::array<std::string_view, 4> kOthers = {"hf", "https", "http", "file"};
  const std::string_view scheme = path.substr(0, path.find(':'));
  const std::string_view rest = path.substr(scheme.size());
  if (!rest.starts_with(":/") || rest.starts_with("://")) return {};
  const bool is_one = std::ranges::find(kStores, scheme, &Store::scheme) != kStores.end() ||
                      std::ranges::find(kOthers, scheme) != kOthers.end();
  return is_one ? scheme : std::string_view();
}

bool is_hub_name(std::string_view name) {
  return !name.empty() && is_word(name.front()) && std::ranges::all_of(name, [](char c) {
    return is_word(c) || c == '-' || c == '_' || c == '.';
  });
}

// `org/model`, which is no path that was mistyped further down: not even `org` is there.
bool is_hub_id(std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view owner = path.substr(0, slash);
  std::error_code ignored;
  return is_hub_name(owner) && is_hub_name(path.substr(slash + 1)) &&
         !std::filesystem::exists(std::filesystem::path(owner), ignored);
}

std::string hub_hint(std::string_view id) {
  const std::string_view name = id.substr(id.find('/') + 1);
  return fmt::format("hf download {} --local-dir {}", shell_quoted(id), shell_quoted(name));
}

}  // namespace

std::string remote_hint(std::string_view path) {
  constexpr std::string_view kHub = "hf://";
  constexpr std::string_view kWeb = "https://huggingface.co/";
  const std::string_view scheme = scheme_of(path);
  if (const std::string_view meant = mistyped_scheme(path); !meant.empty()) {
    return translated("; {}:// has two slashes", meant);
  }
  if (scheme.empty()) {
    if (!is_hub_id(path)) return {};
    return translated("; if it is a model of the Hugging Face Hub, download it first: {}",
                      hub_hint(path));
  }
  if (scheme == "file") return "; give the path without file://";
  const std::string not_read = translated("; {}:// is not read by this build", scheme);
  for (const std::string_view hub : {kHub, kWeb}) {
    if (!path.starts_with(hub) || !path.substr(hub.size()).contains('/')) continue;
    return fmt::format("{}: {}", not_read, hub_hint(path.substr(hub.size())));
  }
  const auto store = std::ranges::find(kStores, scheme, &Store::scheme);
  if (store == kStores.end()) return translated("{}: download it, or mount it", not_read);
  return translated("{}: mount it, or copy it with {}", not_read,
                    fmt::format(fmt::runtime(store->download), shell_quoted(path)));
}

Status check_local_output(std::string_view path) {
  if (const std::string_view meant = mistyped_scheme(path); !meant.empty()) {
    return fail(Code::kUsage,
                "{}: found one slash behind {}:, expected two; a folder of that name is ./{}",
                printable(path), meant, printable(path));
  }
  const std::string_view scheme = scheme_of(path);
  if (scheme.empty()) return {};
  return fail(Code::kUsage,
              "{}: outputs are written on this machine, not to {}://; choose a local path and "
              "upload what was written",
              printable(path), scheme);
}

}  // namespace shardwright
