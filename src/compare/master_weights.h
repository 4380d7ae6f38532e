// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "exec/jobs.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The weight whose master weight a tensor is, by its name (`optimizer.state.param.X`,
/// `chained_0.optimizer.state.fp32_param.X`); nullopt for all others. Borrows the name.
[[nodiscard]] std::optional<std::string_view> weight_of_master(std::string_view name);

[[nodiscard]] bool has_master_weights(const Catalog& catalog);

/// What check_master_weights() will do.
struct MasterWeightCheck {
  std::uint64_t bytes = 0;  ///< that it reads, where it finds no difference
  /// The parameters that are their own master weights, as float32 ones may be: which states belong
  /// to them follows from shapes, groups and order alone, and no value shows whether that is so.
  std::vector<std::string> unproven;
  /// Their types.
  std::set<DType> unproven_types;
};

/// Reads nothing. Error: as check_master_weights.
[[nodiscard]] Result<MasterWeightCheck> plan_master_weights(const Catalog& catalog);

/// What looking at some of the parameters showed.
struct SampledMasters {
  std::size_t looked_at = 0;
  std::vector<std::string> strange;  ///< parameters whose master weights are not their weights
};

/// Compares the first elements of some pairs that are spread over the catalog, as
/// check_master_weights does all of them. Errors: as there, but for differences.
[[nodiscard]] Result<SampledMasters> sample_master_weights(const Catalog& catalog,
                                                           SourceFiles& files);

/// Proves that states were given to the right parameters: rounded to its dtype, each master weight
/// (`optimizer.state.param.X`) must be the weight X bit by bit, where it is not the same bytes.
/// Reads both a tile at a time. Errors: kOptimizerMismatch with the tensor,
/// the first element that differs, one for each pair, told to `defects`; kUsage where X is not in
/// the catalog. REQUIRES: tensors are raw and complete.
[[nodiscard]] Status check_master_weights(const Catalog& catalog, SourceFiles& files,
                                          Defects& defects, const Workers& workers);

}  // namespace shardwright
