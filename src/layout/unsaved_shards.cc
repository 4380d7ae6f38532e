// SPDX-License-Identifier: Apache-2.0
#include "layout/unsaved_shards.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/translated.h"
#include "layout/adapter_shards.h"
#include "layout/state_name.h"
#include "layout/tower.h"

namespace shardwright {
namespace {

constexpr std::string_view kOwnProjection = ".self_attention.linear_proj.weight";

// What each attention cuts along its columns; its rows are the layer's width.
bool is_projection(const StoredTensor& tensor) {
  return tensor.desc.name.ends_with(kOwnProjection) && tensor.desc.shape.size() >= 2 &&
         !is_of_adapter(tensor.desc.name) && !split_state_name(tensor.desc.name);
}

// Whether a piece of it has one of `ways` parts of its columns.
bool is_cut(const StoredTensor& tensor, std::int64_t ways) {
  const int axis = tensor.desc.shape.size() - 1;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const auto columns = checked_mul(tensor.chunks.box(i).shape[axis], ways);
    if (columns && *columns == tensor.desc.shape[axis]) return true;
  }
  return false;
}

bool is_one_shard(const StoredTensor& tensor, std::int64_t ways) {
  const int axis = tensor.desc.shape.size() - 1;
  const std::int64_t columns = tensor.desc.shape[axis];
  const auto all = checked_mul(columns, ways);
  if (columns == 0 || !all || *all != tensor.desc.shape[axis - 1]) return false;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    if (tensor.chunks.box(i).shape[axis] != columns) return false;
  }
  return true;
}

std::string layers_of(std::string_view name) {
  constexpr std::string_view kLayers = ".layers";
  const std::size_t at = name.rfind(".layers.");
  return std::string(name.substr(0, at == std::string_view::npos ? at : at + kLayers.size()));
}

}  // namespace

std::vector<LostPart> unsaved_shards(const Catalog& catalog, std::int64_t tensor) {
  std::vector<LostPart> lost;
  if (tensor < 2) return lost;
  bool is_shared_out = false;
  std::set<std::string> told;
  for (const StoredTensor& stored : catalog.tensors) {
    if (!is_projection(stored)) continue;
    const std::string& name = stored.desc.name;
    if (tower_of(name).empty()) {
      is_shared_out = is_shared_out || is_cut(stored, tensor);
      continue;
    }
    if (!is_one_shard(stored, tensor) || !told.insert(layers_of(name)).second) continue;
    const int axes = stored.desc.shape.size();
    lost.push_back(
        {name, translated("tensor {}: found {} columns, expected {} as it has rows, of which the "
                          "run's {} tensor ranks had a part each; of {} only the first rank's "
                          "shards were saved, as MimoModel of Megatron-Core 0.16 does with TP > 1",
                          name, stored.desc.shape[axes - 1], stored.desc.shape[axes - 2], tensor,
                          layers_of(name))});
  }
  if (!is_shared_out) lost.clear();
  return lost;
}

}  // namespace shardwright
