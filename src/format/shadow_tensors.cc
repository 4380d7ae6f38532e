// SPDX-License-Identifier: Apache-2.0
#include "format/shadow_tensors.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardwright {
namespace {

// Of one tensor, made once however many shadows it has.
using BoxSet = std::set<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>;

std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> key_of(const Box& box) {
  return {{box.origin.begin(), box.origin.end()}, {box.shape.begin(), box.shape.end()}};
}

BoxSet boxes_of(const ChunkList& chunks) {
  BoxSet boxes;
  for (std::size_t i = 0; i < chunks.size(); ++i) boxes.insert(key_of(chunks.box(i)));
  return boxes;
}

bool repeats(const StoredTensor& shadow, const StoredTensor& tensor, const BoxSet& boxes) {
  bool is_alike = shadow.desc.dtype == tensor.desc.dtype &&
                  shadow.desc.shape == tensor.desc.shape && shadow.encoding == tensor.encoding;
  for (std::size_t i = 0; is_alike && i < shadow.chunks.size(); ++i) {
    is_alike = boxes.contains(key_of(shadow.chunks.box(i)));
  }
  return is_alike;
}

}  // namespace

std::optional<ShadowName> parse_shadow_name(std::string_view name) {
  constexpr std::string_view kMark = "__shadow_";
  if (!name.starts_with(kMark)) return std::nullopt;
  name.remove_prefix(kMark.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string_view rank = name.substr(0, digits);
  name.remove_prefix(digits);
  if (rank.empty() || !name.starts_with("__") || name.size() == 2) return std::nullopt;
  return ShadowName{name.substr(2), rank};
}

void fold_shadows(Catalog& catalog) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  bool has_shadows = false;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    by_name.emplace(catalog.tensors[i].desc.name, i);
    has_shadows |= parse_shadow_name(catalog.tensors[i].desc.name).has_value();
  }
  if (!has_shadows) return;
  std::unordered_map<std::size_t, BoxSet> boxes;
  std::vector<bool> is_folded(catalog.tensors.size(), false);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const StoredTensor& shadow = catalog.tensors[i];
    const std::optional<ShadowName> name = parse_shadow_name(shadow.desc.name);
    if (!name) continue;
    const auto found = by_name.find(name->tensor);
    if (found == by_name.end() || found->second == i) continue;
    StoredTensor& tensor = catalog.tensors[found->second];
    const auto [own, is_new] = boxes.try_emplace(found->second);
    if (is_new) own->second = boxes_of(tensor.chunks);
    if (!repeats(shadow, tensor, own->second)) continue;
    for (std::size_t c = 0; c < shadow.chunks.size(); ++c) {
      tensor.chunks.push_back(shadow.chunks[c]);
    }
    is_folded[i] = true;
  }
  std::vector<StoredTensor> kept;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    if (!is_folded[i]) kept.push_back(std::move(catalog.tensors[i]));
  }
  catalog.tensors = std::move(kept);
}

}  // namespace shardwright
