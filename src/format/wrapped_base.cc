// SPDX-License-Identifier: Apache-2.0
#include "format/wrapped_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/shell_path.h"
#include "base/text.h"
#include "layout/module_wrappers.h"

namespace shardwright {
namespace {

// How parts of an adapter's names begin.
constexpr std::array<std::string_view, 3> kBeginnings = {"lora_", "modules_to_save",
                                                         "trainable_tokens_delta"};

// What an adapter's tensor is; empty for others.
std::string_view kind_of(std::string_view name) {
  const auto found = std::ranges::find_if(kBeginnings, [&](std::string_view beginning) {
    for (std::size_t at = name.find(beginning); at != std::string_view::npos;
         at = name.find(beginning, at + 1)) {
      if (at == 0 || name[at - 1] == '.') return true;
    }
    return false;
  });
  return found == kBeginnings.end() ? std::string_view{} : *found;
}

bool is_wrapped(const StoredTensor& tensor) {
  return std::ranges::any_of(split_at(tensor.desc.name, '.'), is_part_of_peft);
}

}  // namespace

std::vector<std::string> adapters_of_wrapped(const Catalog& catalog) {
  std::vector<std::string> adapters;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!kind_of(tensor.desc.name).empty()) adapters.push_back(tensor.desc.name);
  }
  if (adapters.empty() || std::ranges::none_of(catalog.tensors, is_wrapped)) return {};
  return adapters;
}

std::string flags_of_wrapped(std::string_view flag, const std::vector<std::string>& adapters) {
  std::set<std::string_view> kinds;
  for (const std::string& name : adapters) kinds.insert(kind_of(name));
  std::string flags;
  for (const std::string_view kind : kinds) {
    flags += fmt::format("{}{} '*.{}*'", flags.empty() ? "" : " ", flag, kind);
  }
  return flags;
}

std::vector<StoredTensor> take_adapters_of_wrapped(Catalog& catalog) {
  const std::vector<std::string> names = adapters_of_wrapped(catalog);
  if (names.empty()) return {};
  const std::set<std::string_view> taken(names.begin(), names.end());
  const auto rest = std::stable_partition(
      catalog.tensors.begin(), catalog.tensors.end(),
      [&](const StoredTensor& tensor) { return !taken.contains(tensor.desc.name); });
  std::vector<StoredTensor> adapters(std::make_move_iterator(rest),
                                     std::make_move_iterator(catalog.tensors.end()));
  catalog.tensors.erase(rest, catalog.tensors.end());
  return adapters;
}

std::string merge_command_of_wrapped(const Checkpoint& checkpoint) {
  constexpr std::string_view kBeside = "lora_adapter";  // where verl has it
  const std::string path = shell_path(checkpoint.location.path);
  const bool is_beside =
      checkpoint.directory->exists(std::string(kBeside) + "/adapter_config.json");
  const std::string adapter =
      is_beside ? shell_path(checkpoint.location.path + "/" + std::string(kBeside)) : "ADAPTER";
  return "shardwright merge-adapter " + path + " " + adapter + " OUT";
}

}  // namespace shardwright
