// SPDX-License-Identifier: Apache-2.0
#include "convert/constants.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "exec/tile_grid.h"
#include "exec/tile_reader.h"
#include "plan/draft.h"
#include "plan/lower.h"

namespace shardwright {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{1} << 20;

// A plan that reads the constants, each as one target tensor of doubles.
Plan plan_of(const Correspondence& correspondence, std::span<const CanonicalTensor> canonical,
             const Catalog& catalog) {
  Plan plan;
  for (const MappedTensor& mapped : correspondence.megatron) {
    if (!mapped.constant) continue;
    const auto found = std::ranges::find(canonical, mapped.desc.name,
                                         [](const CanonicalTensor& c) { return c.desc.name; });
    if (found == canonical.end()) continue;
    plan.target.tensors.push_back(
        {{mapped.desc.name, DType::kF64, mapped.desc.shape}, ChunkList(mapped.desc.shape.size())});
    plan.tensors.push_back({{view_of_canonical(*found)}, mapped.constant, 0.0});
  }
  if (!plan.tensors.empty()) plan.source = catalog;
  return plan;
}

Status check_tile(const TensorDesc& target, double expected, const Box& tile,
                  std::span<const double> values) {
  const auto wrong = std::ranges::find_if(values, [&](double value) { return value != expected; });
  if (wrong == values.end()) return {};
  return fail(Code::kUnmatchedSource,
              "tensor {}: found {} in {}, expected {} everywhere: this family has no Hugging Face "
              "tensor that could hold it",
              target.name, *wrong, to_string(tile), expected);
}

}  // namespace

Status check_constants(const Correspondence& correspondence,
                       std::span<const CanonicalTensor> canonical, const Catalog& catalog,
                       SourceFiles& files) {
  const Plan plan = plan_of(correspondence, canonical, catalog);
  if (plan.tensors.empty()) return {};
  const Lowering lowering(plan);
  std::vector<std::byte> scratch(static_cast<std::size_t>(kTileBytes));
  std::vector<double> values;
  TileReader reader(plan, lowering, files, scratch);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorDesc& target = plan.target.tensors[i].desc;
    SW_TRY(check_coverage(plan.source.tensors[plan.tensors[i].views[0].source]));
    const TileGrid grid(target.shape, sizeof(double), kTileBytes);
    for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
      const Box tile = grid.tile(ordinal);
      values.assign(static_cast<std::size_t>(tile.volume()), 0.0);
      const std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
      const Part part = dense_part(tile, bytes.data(), sizeof(double));
      SW_TRY(reader.read(i, tile, bytes, std::span(&part, 1)));
      SW_TRY(check_tile(target, *plan.tensors[i].fill, tile, values));
    }
  }
  return {};
}

}  // namespace shardwright
