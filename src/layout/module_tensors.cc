// SPDX-License-Identifier: Apache-2.0
#include "layout/module_tensors.h"

#include "base/fail.h"
#include "layout/latent_fusion.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_names.h"

namespace shardwright {

ModuleTensors::ModuleTensors(std::span<const TensorDesc> modules) : plain_norms_(modules) {
  for (const TensorDesc& module : modules) by_name_.emplace(module.name, &module);
}

std::string ModuleTensors::canonical_name(std::string_view module) const {
  return canonical_from_legacy(module, {}, plain_norms_.has(module)).name;
}

// All widths are those of the whole model, of which each rank has the same share.
Result<std::vector<ModuleTensors::Part>> ModuleTensors::parts_of(
    const TensorDesc& module, std::string_view name, std::int64_t tensor_parallel) const {
  std::vector<Part> parts;
  if (is_fused_latent(name)) {
    const std::string up =
        module.name.substr(0, module.name.rfind(".linear_")) + ".linear_q_up_proj.weight";
    const auto found = by_name_.find(up);
    const bool has_columns = found != by_name_.end() && found->second->shape.size() == 2;
    const LatentRows rows =
        SW_TRY(latent_rows(name, module.shape.empty() ? 0 : module.shape[0] / tensor_parallel,
                           has_columns ? found->second->shape[1] : 0, tensor_parallel));
    parts.push_back({rows.query, rows.queries * tensor_parallel});
    parts.push_back({rows.key_value, rows.keys_values * tensor_parallel});
    return parts;
  }
  for (const MixerPart& part : mixer_parts(module, by_name_)) {
    parts.push_back({std::string(name) + std::string(part.suffix), part.rows});
  }
  return parts;
}

Result<std::vector<RowRun>> ModuleTensors::runs_of(
    const TensorDesc& module, std::optional<std::int64_t> tensor_parallel) const {
  const std::string name = canonical_name(module.name);
  if (name.ends_with(".experts.weight1") || name.ends_with(".experts.weight2")) {
    return fail(Code::kUnsupportedFormat,
                "tensor {}: found the weights of all experts in one, as the grouped linears of "
                "Megatron-Core 0.16 and before have them, expected a tensor for each expert; save "
                "it as torch_dist there",
                module.name);
  }
  // What arguments say is whatever a file says.
  const bool is_told =
      tensor_parallel && *tensor_parallel >= 1 && *tensor_parallel <= kMostRanksOfAnAxis;
  const std::int64_t ways = is_told ? *tensor_parallel : 1;
  const std::vector<Part> parts = SW_TRY(parts_of(module, name, ways));
  const std::int64_t all = module.shape.empty() ? 1 : module.shape[0];
  if (parts.empty()) return std::vector<RowRun>{{name, 0, 0, all}};
  if (!is_told) {
    return fail(Code::kUnsupportedFormat,
                "tensor {}: its rows are several tensors' and lie as the run's tensor-parallel "
                "ranks had them, and no arguments of the run say how many there were; convert a "
                "save that has its entry args",
                module.name);
  }
  std::int64_t sum = 0;
  bool is_shared_out = true;
  for (const Part& part : parts) {
    sum += part.rows;
    is_shared_out &= part.rows > 0 && part.rows % ways == 0;
  }
  if (!is_shared_out || sum != all) {
    return fail(Code::kShapeMismatch,
                "tensor {}: found {} rows, which its parts on {} tensor-parallel ranks don't make "
                "up",
                module.name, all, ways);
  }
  std::vector<RowRun> runs;
  std::int64_t row = 0;
  for (std::int64_t rank = 0; rank < ways; ++rank) {
    for (const Part& part : parts) {
      const std::int64_t own = part.rows / ways;
      runs.push_back({part.tensor, row, rank * own, own});
      row += own;
    }
  }
  return runs;
}

}  // namespace shardwright
