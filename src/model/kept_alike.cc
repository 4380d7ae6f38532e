// SPDX-License-Identifier: Apache-2.0
#include "model/kept_alike.h"

#include <algorithm>

#include "layout/lost_siblings.h"

namespace shardwright {

std::optional<std::string> alike_in_megatron(const Mapping& mapping, std::string_view hf) {
  for (const AlikePart& part : mapping.alike) {
    for (const std::string& prefix : part.hf) {
      if (hf.starts_with(prefix)) return part.megatron + std::string(hf.substr(prefix.size()));
    }
  }
  return std::nullopt;
}

std::optional<std::string> alike_in_hf(const Mapping& mapping, std::string_view megatron,
                                       const TensorIndex* wanted) {
  for (const AlikePart& part : mapping.alike) {
    if (!megatron.starts_with(part.megatron)) continue;
    const std::string rest(megatron.substr(part.megatron.size()));
    const auto is_wanted = [&](const std::string& prefix) {
      return wanted != nullptr && wanted->contains(prefix + rest);
    };
    const auto prefix = std::ranges::find_if(part.hf, is_wanted);
    return (prefix == part.hf.end() ? part.hf.front() : *prefix) + rest;
  }
  return std::nullopt;
}

std::vector<std::string> lacking_parts(const Mapping& mapping, Side side,
                                       const TensorIndex& present) {
  std::vector<std::string> lacking;
  std::vector<const TensorDesc*> kept;
  for (const AlikePart& part : mapping.alike) {
    const auto is_of_it = [&](const TensorDesc& tensor) {
      if (side == Side::kMegatron) return tensor.name.starts_with(part.megatron);
      return std::ranges::any_of(
          part.hf, [&](const std::string& prefix) { return tensor.name.starts_with(prefix); });
    };
    const std::size_t before = kept.size();
    for (const TensorDesc& tensor : present.tensors()) {
      if (is_of_it(tensor)) kept.push_back(&tensor);
    }
    if (part.optional || kept.size() > before) continue;
    lacking.push_back((side == Side::kMegatron ? part.megatron : part.hf.front()) + "*");
  }
  std::set<std::string> lost = lost_siblings(kept);
  lost.merge(lost_weights(kept));
  lacking.insert(lacking.end(), lost.begin(), lost.end());
  return lacking;
}

}  // namespace shardwright
