// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dist/single_shards.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "format/tensor_pieces.h"
#include "layout/expert_names.h"
#include "layout/gate_half.h"

namespace shardwright {
namespace {

struct SingleShard {
  std::string whole;  // the name of the tensor that it is a piece of
  std::optional<std::int64_t> expert;
  GateHalf half = GateHalf::kWhole;
};

SingleShard split_single_shard(std::string_view name) {
  SingleShard shard;
  shard.half = take_gate_half(name);
  shard.whole = name;
  std::string_view rest = name_in_experts(name);
  const std::size_t begin = name.size() - rest.size();
  const std::optional<std::int64_t> expert = take_number(rest);
  if (!expert || !rest.starts_with('.')) return shard;
  shard.expert = expert;
  shard.whole = std::string(name.substr(0, begin)) + std::string(rest.substr(1));
  return shard;
}

}  // namespace

Result<bool> join_single_shards(Catalog& catalog) {
  const bool has_any = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return split_single_shard(tensor.desc.name).whole != tensor.desc.name;
  });
  if (!has_any) return false;
  std::unordered_map<std::string, TensorPieces> pieces;
  std::vector<std::string> wholes;  // of each tensor in turn
  for (const StoredTensor& tensor : catalog.tensors) {
    SingleShard shard = split_single_shard(tensor.desc.name);
    if (!pieces[shard.whole].add(shard.expert, shard.half, tensor)) {
      return fail(Code::kDuplicateName, "tensor {}: it is stored under another name too",
                  printable(tensor.desc.name));
    }
    wholes.push_back(std::move(shard.whole));
  }
  std::vector<StoredTensor> joined;
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const auto found = pieces.find(wholes[i]);
    if (found == pieces.end()) continue;  // with the first of its pieces
    if (found->second.is_whole()) {
      joined.push_back(catalog.tensors[i]);
    } else {
      SW_TRY(found->second.check(wholes[i]));
      joined.push_back(found->second.put_together(wholes[i]));
    }
    pieces.erase(found);
  }
  catalog.tensors = std::move(joined);
  return true;
}

}  // namespace shardwright
