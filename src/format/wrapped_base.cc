// SPDX-License-Identifier: Apache-2.0
#include "format/wrapped_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/text.h"
#include "layout/module_wrappers.h"

namespace shardwright {
namespace {

// A part of an adapter's names, and the pattern that means all of its kind.
struct MatrixKind {
  std::string_view part;
  std::string_view pattern;
};

constexpr std::string_view kLora = "*.lora_*";
constexpr std::array<MatrixKind, 7> kAdapterKinds = {
    {{"lora_A", kLora},
     {"lora_B", kLora},
     {"lora_embedding_A", kLora},
     {"lora_embedding_B", kLora},
     {"lora_magnitude_vector", kLora},
     {"modules_to_save", "*.modules_to_save.*"},
     {"trainable_tokens_delta", "*.trainable_tokens_delta.*"}}};

// What an adapter's tensor is; null for others.
const MatrixKind* kind_of(std::string_view name) {
  const std::vector<std::string_view> parts = split_at(name, '.');
  const auto* const kind = std::ranges::find_if(kAdapterKinds, [&](const MatrixKind& each) {
    return std::ranges::find(parts, each.part) != parts.end();
  });
  return kind == kAdapterKinds.end() ? nullptr : kind;
}

}  // namespace

std::vector<std::string> adapters_of_wrapped(const Catalog& catalog) {
  std::vector<std::string> adapters;
  bool is_wrapped = false;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string& name = tensor.desc.name;
    is_wrapped |= std::ranges::any_of(split_at(name, '.'), is_part_of_peft);
    if (kind_of(name) != nullptr) adapters.push_back(name);
  }
  if (!is_wrapped) adapters.clear();
  return adapters;
}

std::string flags_without(const std::vector<std::string>& adapters) {
  std::set<std::string_view> patterns;
  for (const std::string& name : adapters) {
    if (const MatrixKind* kind = kind_of(name)) patterns.insert(kind->pattern);
  }
  std::string flags;
  for (const std::string_view pattern : patterns) {
    flags += fmt::format("{}--exclude '{}'", flags.empty() ? "" : " ", pattern);
  }
  return flags;
}

std::vector<StoredTensor> take_adapters_of_wrapped(Catalog& catalog) {
  const std::vector<std::string> names = adapters_of_wrapped(catalog);
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
  const std::string path = shell_quoted(checkpoint.location.path);
  const bool is_beside =
      checkpoint.directory->exists(std::string(kBeside) + "/adapter_config.json");
  const std::string adapter =
      is_beside ? shell_quoted(checkpoint.location.path + "/" + std::string(kBeside)) : "ADAPTER";
  return "shardwright merge-adapter " + path + " " + adapter + " OUT";
}

}  // namespace shardwright
