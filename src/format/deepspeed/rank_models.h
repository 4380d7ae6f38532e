// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/prepare_ahead.h"
#include "format/deepspeed/model_catalog.h"
#include "format/deepspeed/model_states.h"
#include "io/source_files.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The model states that one rank saved, and their file in Catalog::files.
struct RankModel {
  std::uint32_t file = 0;
  ModelStates states;
};

/// Fills in `states` of all ranks from their `file`, several at a time: there may be a thousand.
/// Errors: those of opening and of `read`, the first rank's first.
template <class OfRank, class States>
[[nodiscard]] Status read_ranks(std::vector<OfRank>& ranks, SourceFiles& files,
                                Result<States> (*read)(const ReadableFile& file)) {
  const auto read_one = [&](std::size_t i) -> Result<States> {
    const auto file = SW_TRY(files.get(ranks[i].file));
    return read(*file);
  };
  const auto take = [&](std::size_t i, Result<States> states) -> Status {
    ranks[i].states = SW_TRY(std::move(states));
    return {};
  };
  return read_ahead(ranks.size(), read_one, take);
}

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
