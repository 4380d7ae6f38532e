// SPDX-License-Identifier: Apache-2.0
#include "verify/named_replicas.h"

#include <charconv>
#include <map>

#include "base/fail.h"
#include "plan/canonical.h"
#include "verify/element_difference.h"
#include "verify/tile_buffer.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

// A view of two tensors of one checkpoint.
View view_of_pair(const Checkpoint& checkpoint, std::uint32_t a, std::uint32_t b) {
  View view;
  view.checkpoint.files = checkpoint.files;
  view.plan.source.files = checkpoint.catalog.files;
  for (const std::uint32_t index : {a, b}) {
    const StoredTensor& stored = checkpoint.catalog.tensors[index];
    const auto source = static_cast<std::uint32_t>(view.plan.source.tensors.size());
    view.plan.source.tensors.push_back(stored);
    view.plan.target.tensors.push_back({stored.desc, ChunkList(stored.desc.shape.size())});
    view.plan.tensors.push_back(
        {{view_of_canonical({stored.desc, source, -1})}, std::nullopt, 0.0});
  }
  return view;
}

Result<std::optional<Error>> compare_pair(const View& view, const ProofOptions& options) {
  const TensorDesc& first = view.plan.target.tensors[0].desc;
  const TensorDesc& second = view.plan.target.tensors[1].desc;
  if (first.dtype != second.dtype || !(first.shape == second.shape)) {
    return Error{Code::kShapeMismatch,
                 fmt::format("tensor {}: found {} {}, expected {} {} as {}", second.name,
                             torch_name(second.dtype), to_string(second.shape),
                             torch_name(first.dtype), to_string(first.shape), first.name),
                 0};
  }
  const Lowering lowering(view.plan);
  const std::size_t tile_bytes = Workload(options, 0).buffer_bytes(4);
  TileBuffer a(view, lowering, tile_bytes);
  TileBuffer b(view, lowering, tile_bytes);
  const TileGrid grid = tiles_of(view, 0, tile_bytes);
  ElementDifference found;
  for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
    const Box tile = grid.tile(ordinal);
    const auto left = SW_TRY(a.read(0, tile));
    const auto right = SW_TRY(b.read(1, tile));
    ElementDifference part = compare_elements(first.dtype, left, right, std::nullopt);
    part.first = part.differing == 0 ? 0 : row_major_position(first.shape, tile, part.first);
    found.add(part);
  }
  if (found.differing == 0) return std::optional<Error>();
  return Error{
      Code::kReplicasDiffer,
      fmt::format("tensor {}: found {} elements that differ from {}, first at {} (max_delta "
                  "{}), expected a replica; the tensor ranks have drifted apart",
                  second.name, found.differing, first.name,
                  to_string(index_of(first.shape, found.first)), found.max_delta),
      0};
}

}  // namespace

std::optional<NamedReplica> parse_named_replica(std::string_view name) {
  constexpr std::string_view kMark = ".__tp_replica_";
  const std::size_t at = name.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(at + kMark.size());
  NamedReplica replica{name.substr(0, at), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), replica.rank);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return replica;
}

Result<std::vector<Error>> compare_named_replicas(const Checkpoint& checkpoint,
                                                  const ProofOptions& options) {
  const Catalog& catalog = checkpoint.catalog;
  std::map<std::string_view, std::uint32_t> firsts;
  std::vector<Error> differences;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const auto replica = parse_named_replica(catalog.tensors[i].desc.name);
    if (!replica || !check_coverage(catalog.tensors[i])) continue;
    const auto [first, is_new] = firsts.emplace(replica->name, i);
    if (is_new) continue;
    const View pair = view_of_pair(checkpoint, first->second, i);
    auto difference = SW_TRY(compare_pair(pair, options));
    if (difference) differences.push_back(*std::move(difference));
  }
  return differences;
}

}  // namespace shardwright
