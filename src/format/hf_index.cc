// SPDX-License-Identifier: Apache-2.0
#include "format/hf_index.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/fail.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostIndexBytes = std::uint64_t{256} << 20;

std::vector<std::string> sorted_with(std::vector<std::string> names,
                                     const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  std::ranges::sort(names);
  return names;
}

// Some writers put a real number there. What no file can hold stays a total that none agrees with.
std::optional<std::uint64_t> total_of(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_number()) return std::nullopt;
  constexpr double kTooMany = 0x1p64;
  const double bytes = std::max(value.get<double>(), 0.0);
  return bytes < kTooMany ? static_cast<std::uint64_t>(bytes)
                          : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

Result<HfIndex> read_hf_index(const Directory& directory, std::string_view name) {
  const std::string text = SW_TRY(read_whole(directory, name, kMostIndexBytes));
  const nlohmann::json document = SW_TRY(parse_json(text, name));
  if (!document.is_object() || !document.contains("weight_map") ||
      !document["weight_map"].is_object()) {
    return fail(Code::kJsonCorrupt, "{} has no weight_map object", name);
  }
  HfIndex index;
  for (const auto& [key, file] : document["weight_map"].items()) {
    if (!file.is_string()) {
      return fail(Code::kJsonCorrupt, "{}: the file of {} is not a string", name, key);
    }
    index.files.emplace(key, file.get<std::string>());
  }
  if (document.contains("metadata") && document["metadata"].is_object()) {
    const auto total = document["metadata"].find("total_size");
    if (total != document["metadata"].end()) index.total_bytes = total_of(*total);
  }
  return index;
}

std::string write_hf_index(const Catalog& catalog) {
  std::vector<const StoredTensor*> sorted;
  sorted.reserve(catalog.tensors.size());
  std::uint64_t total_bytes = 0;
  for (const StoredTensor& tensor : catalog.tensors) {
    sorted.push_back(&tensor);
    total_bytes += tensor.chunks.range(0).length;
  }
  std::ranges::sort(sorted, {}, [](const StoredTensor* tensor) -> const std::string& {
    return tensor->desc.name;
  });
  // As a document it would take several times its text.
  std::string text = fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{", total_bytes);
  std::string_view before = "\n    ";
  for (const StoredTensor* tensor : sorted) {
    text += before;
    text += nlohmann::json(tensor->desc.name).dump();
    text += ": ";
    text += nlohmann::json(catalog.files[tensor->chunks.file(0)]).dump();
    before = ",\n    ";
  }
  text += sorted.empty() ? "}\n}\n" : "\n  }\n}\n";
  return text;
}

std::vector<std::string> HfIndexDifference::not_where_listed() const {
  return sorted_with(ghosts, misplaced);
}

std::vector<std::string> HfIndexDifference::not_listed_there() const {
  return sorted_with(unlisted, misplaced);
}

HfIndexDifference compare_with_index(const Catalog& catalog, const HfIndex& index) {
  HfIndexDifference difference;
  std::unordered_map<std::string_view, std::string_view> stored;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string& file = catalog.files[tensor.chunks.file(0)];
    stored.emplace(tensor.desc.name, file);
    if (!index.files.contains(tensor.desc.name)) {
      difference.unlisted.push_back(tensor.desc.name);
    }
  }
  for (const auto& [key, file] : index.files) {
    const auto found = stored.find(key);
    if (found == stored.end()) {
      difference.ghosts.push_back(key);
    } else if (found->second != file) {
      difference.misplaced.push_back(key);
    }
  }
  std::ranges::sort(difference.unlisted);
  return difference;
}

}  // namespace shardwright
