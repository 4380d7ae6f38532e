// SPDX-License-Identifier: Apache-2.0
#include "canonical/prediction_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/translated.h"
#include "layout/layer_name.h"
#include "model/apply.h"

namespace shardwright {
namespace {

// The layer that a name lies in: through its first number, else its first word. `model.layers.61.`
// of `model.layers.61.enorm.weight`, `mtp.` of `mtp.fc.weight`.
std::string_view layer_of(std::string_view name) {
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = name.find('.', begin);
    if (dot == std::string_view::npos) break;
    const std::string_view word = name.substr(begin, dot - begin);
    const bool is_number =
        !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number) return name.substr(0, dot + 1);
    begin = dot + 1;
  }
  return name.substr(0, name.find('.') + 1);
}

}  // namespace

std::vector<std::string> prediction_tensors(const Correspondence& correspondence) {
  std::vector<bool> is_used(correspondence.hf.size(), false);
  std::vector<bool> predicts(correspondence.hf.size(), false);
  std::vector<bool> is_extra(correspondence.hf.size(), false);
  for (const Block& block : correspondence.blocks) {
    const std::string& name = correspondence.megatron[block.megatron].desc.name;
    const bool is_mtp = is_prediction_layer(name);
    const bool is_kept = name.starts_with(kHfExtraPrefix);
    (is_mtp ? predicts : is_kept ? is_extra : is_used)[block.hf] = true;
  }
  std::vector<std::string> names;
  std::set<std::string, std::less<>> layers;
  for (std::size_t i = 0; i < correspondence.hf.size(); ++i) {
    const std::string& name = correspondence.hf[i].desc.name;
    if (!predicts[i] || is_used[i]) continue;
    names.push_back(name);
    layers.emplace(layer_of(name));
  }
  for (std::size_t i = 0; i < correspondence.hf.size(); ++i) {
    if (is_used[i]) layers.erase(std::string(layer_of(correspondence.hf[i].desc.name)));
  }
  // What Megatron has no place for goes with its layer.
  for (std::size_t i = 0; i < correspondence.hf.size(); ++i) {
    const std::string& name = correspondence.hf[i].desc.name;
    if (is_extra[i] && layers.contains(layer_of(name))) names.push_back(name);
  }
  for (const HfCopy& copy : correspondence.copies) {
    if (layers.contains(layer_of(copy.desc.name))) names.push_back(copy.desc.name);
  }
  return names;
}

void erase_tensors(const std::vector<std::string>& names, Catalog& catalog) {
  const std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  std::erase_if(catalog.tensors,
                [&](const StoredTensor& tensor) { return wanted.contains(tensor.desc.name); });
}

std::vector<std::string> erase_prediction_layers(Catalog& catalog) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (is_prediction_layer(tensor.desc.name)) names.push_back(tensor.desc.name);
  }
  erase_tensors(names, catalog);
  std::erase_if(catalog.objects,
                [](const StoredObject& object) { return is_prediction_layer(object.name); });
  return names;
}

std::string dropped_note(const std::vector<std::string>& names) {
  return translated("{} tensors of prediction layers are dropped (--mtp keep keeps them): {}",
                    names.size(), fmt::join(names, ", "));
}

}  // namespace shardwright
