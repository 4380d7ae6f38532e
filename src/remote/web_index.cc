// SPDX-License-Identifier: Apache-2.0
#include "remote/web_index.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "io/beneath.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr auto kKnownWebNames = std::to_array<std::string_view>({
    "model.safetensors",
    "model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors",
    "diffusion_pytorch_model.safetensors.index.json",
    "diffusion_pytorch_model.bin",
    "diffusion_pytorch_model.bin.index.json",
    "model_index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "adapter_model.safetensors",
    "adapter_model.bin",
    "adapter_config.json",
    "config.json",
    "generation_config.json",
    "hf_quant_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "params.json",
    "consolidated.00.pth",
    ".metadata",
    "metadata.json",
    "common.pt",
    "integrity.json",
    "model.sig",
    "latest_checkpointed_iteration.txt",
});

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// The few that stand in addresses. What one becomes is not read again.
std::string without_entities(std::string_view text) {
  constexpr auto kEntities = std::to_array<std::pair<std::string_view, char>>({{"&quot;", '"'},
                                                                               {"&#34;", '"'},
                                                                               {"&#39;", '\''},
                                                                               {"&#x27;", '\''},
                                                                               {"&lt;", '<'},
                                                                               {"&gt;", '>'},
                                                                               {"&amp;", '&'}});
  std::string result;
  while (!text.empty()) {
    const auto entity = std::ranges::find_if(
        kEntities, [&](const auto& each) { return text.starts_with(each.first); });
    const bool is_plain = entity == kEntities.end();
    result += is_plain ? text.front() : entity->second;
    text.remove_prefix(is_plain ? 1 : entity->first.size());
  }
  return result;
}

void add_link(std::string_view link, std::string_view folder_path, WebNames& names) {
  if (link.starts_with("./")) link.remove_prefix(2);
  if (link.starts_with(folder_path)) link.remove_prefix(folder_path.size());
  if (link.empty() || link.find_first_of("?#:") != std::string_view::npos) return;
  const bool is_folder = link.ends_with('/');
  if (is_folder) link.remove_suffix(1);
  const auto name = percent_decoded(link);
  if (!name || name->find('/') != std::string::npos || !check_relative_path(*name)) return;
  (is_folder ? names.folders : names.files).push_back(*name);
}

void sort_out(std::vector<std::string>& names) {
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
}

}  // namespace

WebNames names_on_page(std::string_view html, std::string_view folder_path) {
  WebNames names;
  const std::string small = lower(html);
  // nginx's and Apache's, Python's, Caddy's.
  if (small.find("index of ") == std::string::npos &&
      small.find("directory listing") == std::string::npos &&
      small.find("folder path") == std::string::npos) {
    return names;
  }
  constexpr std::string_view kLink = "href=";
  for (std::size_t at = small.find(kLink); at != std::string::npos; at = small.find(kLink, at)) {
    at += kLink.size();
    if (at >= html.size() || (html[at] != '"' && html[at] != '\'')) continue;
    const std::size_t end = html.find(html[at], at + 1);
    if (end == std::string_view::npos) break;
    add_link(without_entities(html.substr(at + 1, end - at - 1)), folder_path, names);
    at = end;
  }
  sort_out(names.files);
  sort_out(names.folders);
  return names;
}

std::span<const std::string_view> known_web_names() { return kKnownWebNames; }

std::optional<std::string> next_rank_file(std::string_view name) {
  constexpr std::string_view kBegin = "consolidated.";
  constexpr std::string_view kEnd = ".pth";
  constexpr std::int64_t kLastRank = 99;
  if (!name.starts_with(kBegin)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  const auto rank = take_number(name);
  if (!rank || *rank < 0 || *rank >= kLastRank || name != kEnd) return std::nullopt;
  return fmt::format("{}{:02}{}", kBegin, *rank + 1, kEnd);
}

Result<std::vector<std::string>> files_in_index(std::string_view text, std::string_view name) {
  const nlohmann::json index = SW_TRY(parse_json(text, name));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object()) {
    return fail(Code::kJsonCorrupt, "{}: found no weight_map, expected the files of a model",
                printable(name));
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) continue;
    // The readers of the index tell what is wrong with the others.
    const auto& path = file.get_ref<const std::string&>();
    if (path.find('/') == std::string::npos && check_relative_path(path)) files.insert(path);
  }
  return std::vector<std::string>(files.begin(), files.end());
}

}  // namespace shardwright
