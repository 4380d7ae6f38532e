// SPDX-License-Identifier: Apache-2.0
#include "canonical/constants.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fail.h"
#include "compare/tensor_values.h"
#include "plan/draft.h"

namespace shardwright {
namespace {

// A plan that reads the constants, each as one target tensor of doubles.
Plan plan_of_canonical(const Correspondence& correspondence,
                       std::span<const CanonicalTensor> canonical, const Catalog& catalog) {
  std::unordered_map<std::string_view, const CanonicalTensor*> by_name;
  for (const CanonicalTensor& tensor : canonical) by_name.emplace(tensor.desc.name, &tensor);
  Plan plan;
  for (const MappedTensor& mapped : correspondence.megatron) {
    if (!mapped.constant) continue;
    const auto found = by_name.find(mapped.desc.name);
    if (found == by_name.end()) continue;
    plan.target.tensors.push_back(
        {{mapped.desc.name, DType::kF64, mapped.desc.shape}, ChunkList(mapped.desc.shape.size())});
    plan.tensors.push_back({{view_of_canonical(*found->second)}, mapped.constant, 0.0});
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
  const Plan plan = plan_of_canonical(correspondence, canonical, catalog);
  if (plan.tensors.empty()) return {};
  TensorValues reader(plan, files);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorDesc& target = plan.target.tensors[i].desc;
    SW_TRY(check_coverage(plan.source.tensors[plan.tensors[i].views[0].source]));
    const TileGrid grid = reader.grid(i);
    for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
      const Box tile = grid.tile(ordinal);
      const std::span<const std::byte> bytes = SW_TRY(reader.read(i, tile));
      std::vector<double> values(bytes.size() / sizeof(double));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      SW_TRY(check_tile(target, *plan.tensors[i].fill, tile, values));
    }
  }
  return {};
}

}  // namespace shardwright
