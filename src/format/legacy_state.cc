// SPDX-License-Identifier: Apache-2.0
#include "format/legacy_state.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "codec/pickle_encode.h"
#include "codec/torch_file.h"
#include "codec/torch_layout.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::array<std::string_view, 5> kKept = {"args", "checkpoint_version", "iteration",
                                                   "opt_param_scheduler",
                                                   "num_floating_point_operations_so_far"};
constexpr std::uint64_t kMostPickleBytes = std::uint64_t{1} << 30;

// Whether a persistent id hangs below: a storage, which is not carried.
bool has_storage(const Document& document, Value value) {
  std::vector<bool> seen(document.node_count(), false);
  std::vector<Value> pending{value};
  while (!pending.empty()) {
    const Value next = pending.back();
    pending.pop_back();
    if (seen[next.id()]) continue;
    seen[next.id()] = true;
    if (next.is(Kind::kPersistentId)) return true;
    document.append_references(next, pending);
  }
  return false;
}

}  // namespace

Result<Document> plain_state(const ReadableFile& file) {
  const TorchFile torch = SW_TRY(TorchFile::open(file));
  const std::string text = SW_TRY(torch.pickle(kMostPickleBytes));
  Document document = SW_TRY(pickle::decode(as_bytes(text)));
  const Value root = document.root();
  const Value state = document.dict();
  for (const std::string_view key : kKept) {
    const Value value = root.find(key);
    if (value && !has_storage(document, value)) document.set(state, key, value);
  }
  document.set_root(state);
  return document;
}

Result<std::string> read_legacy_state(const ReadableFile& file) {
  const Document document = SW_TRY(plain_state(file));
  TorchLayoutOptions options;
  options.prefix = "common";
  return encode_torch_object(SW_TRY(pickle::encode(document, pickle::Protocol::kTwo)), options);
}

}  // namespace shardwright
