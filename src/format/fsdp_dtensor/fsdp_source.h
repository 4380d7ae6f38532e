// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/fsdp_dtensor/source.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Layers by name, and what the run's arguments say of them. Megatron-FSDP numbers the layers of
/// each pipeline stage from 0: then two stages have one name for two layers, and one of them is
/// lost, unless every layer of the model has its own name.
struct FsdpStages {
  std::int64_t stages = 1;
  std::int64_t found = 0;
  std::int64_t expected = 0;  ///< 0 where nothing says it

  [[nodiscard]] bool lost_layers() const { return stages > 1 && found != expected; }
};
[[nodiscard]] FsdpStages count_fsdp_stages(const Catalog& catalog, const Arguments& arguments);

/// Error: kLossySource where layers of an fsdp_dtensor checkpoint replaced each other.
[[nodiscard]] Status check_fsdp_stages(const Catalog& catalog, const Arguments& arguments);

/// Errors: kUnmatchedSource where halves or experts of a tensor are missing, or a name is none of
/// Megatron-FSDP's; kDuplicateName.
[[nodiscard]] Status check_fsdp_pieces(const Catalog& catalog);

/// Megatron's canonical tensors out of those of an fsdp_dtensor checkpoint, which has those of the
/// modules: halves of a gated linear_fc1 put together, experts counted along an axis, what is of
/// several tensors taken apart by ModuleTensors, states under the names of torch_dist. The model's
/// weights are the optimizer's main weights too: where states are kept they appear as both. Steps
/// and RNG states are left out and told. REQUIRES: payloads are located.
///
/// Errors: kUnmatchedSource for halves or experts that are missing or differ; kDuplicateName; those
/// of ModuleTensors and check_fsdp_stages.
[[nodiscard]] Result<Catalog> canonical_from_fsdp(const Catalog& catalog,
                                                  const Arguments& arguments,
                                                  std::vector<std::string>& notes);

/// The same where a loss of layers was accepted: those that are there, under the numbers that they
/// have. Errors: as there, but for those of check_fsdp_stages.
[[nodiscard]] Result<Catalog> named_canonically(const Catalog& catalog, const Arguments& arguments,
                                                std::vector<std::string>& notes);

/// Makes a Megatron source of an fsdp_dtensor one: `catalog`, what is wanted of it, becomes the
/// canonical tensors, and the state that was stored entry by entry a common state. Errors: as
/// canonical_from_fsdp and make_common_state.
[[nodiscard]] Status undo_fsdp(const ConvertRequest& request, Checkpoint& source, Catalog& catalog,
                               std::vector<std::string>& notes);

}  // namespace shardwright
