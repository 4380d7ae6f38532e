// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/deepspeed/model_catalog.h"
#include "format/deepspeed/model_states.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The model states that one rank saved, and their file in Catalog::files.
struct RankModel {
  std::uint32_t file = 0;
  ModelStates states;
};

/// Checks that all are of one save: the same step, world size and parameters. Error: kZeroLayout
/// with the file that is not.
[[nodiscard]] Status check_rank_models(std::span<const RankModel> models, const Catalog& catalog);

/// Adds the parameters that are not trained. `is_cut`: under ZeRO 3 each rank has a padded part of
/// each, else the first has them whole. Errors: kZeroLayout for parts that are missing or of
/// another size, kDuplicateName.
[[nodiscard]] Status add_frozen(std::span<const RankModel> models, bool is_cut,
                                const Checkpoint& checkpoint, ModelCatalog& model);

/// Where the elements of a piece lie in the flat buffer that has it.
[[nodiscard]] FlatElements elements_in(const ZeroPiece& piece, std::uint32_t file,
                                       const LocatedTensor& buffer);

}  // namespace shardwright
