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

// A tensor's name, without what says which piece of another it is.
struct SingleShard {
  std::string_view before;  // up to the expert's number, or all of it
  std::string_view behind;
  std::optional<std::int64_t> expert;
  GateHalf half = GateHalf::kWhole;

  [[nodiscard]] bool is_piece() const { return expert || half != GateHalf::kWhole; }
  [[nodiscard]] std::string whole() const { return std::string(before) + std::string(behind); }
};

SingleShard split_single_shard(std::string_view name) {
  SingleShard shard;
  shard.half = take_gate_half(name);
  shard.before = name;
  std::string_view rest = name_in_experts(name);
  const std::size_t begin = name.size() - rest.size();
  const std::optional<std::int64_t> expert = take_number(rest);
  if (!expert || !rest.starts_with('.')) return shard;
  shard.expert = expert;
  shard.before = name.substr(0, begin);
  shard.behind = rest.substr(1);
  return shard;
}

}  // namespace

Result<bool> join_single_shards(Catalog& catalog) {
  const bool has_any = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return split_single_shard(tensor.desc.name).is_piece();
  });
  if (!has_any) return false;
  std::unordered_map<std::string, TensorPieces> pieces;
  std::vector<std::string> wholes;  // of each tensor in turn
  for (const StoredTensor& tensor : catalog.tensors) {
    const SingleShard shard = split_single_shard(tensor.desc.name);
    std::string whole = shard.whole();
    if (!pieces[whole].add(shard.expert, shard.half, tensor)) {
      return fail(Code::kDuplicateName, "tensor {}: it is stored under another name too",
                  printable(tensor.desc.name));
    }
    wholes.push_back(std::move(whole));
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
