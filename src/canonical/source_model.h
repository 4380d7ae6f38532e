// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/notes.h"
#include "exec/jobs.h"
#include "model/component_names.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// What becomes of optimizer states that are not stored as tensors like the model's: a file for
/// each rank, flat buckets, flattened tensors.
enum class StateUse : std::uint8_t {
  kAsStored,  ///< they stay what they are, unread where a file of their own has them
  kByTensor,  ///< they become states of the model's tensors, where that can be proven
};

/// A checkpoint on its way to Megatron's own tensors.
struct SourceModel {
  Checkpoint checkpoint;  ///< with located payloads
  StateUse states = StateUse::kAsStored;
  /// Whether weights of convolutions that are stored as those of linears get the family's shapes.
  bool unfolds_convolutions = true;
  /// Whether Checkpoint::common_state gets the parameter groups that other entries hold.
  bool reads_settings = false;
  bool accepts_loss = false;  ///< layers of Megatron-FSDP's stages may be lost
  Workers workers;            ///< that compare master weights

  // What to_megatron() found:
  Wrappers wrappers;  ///< that the components of a MIMO model had
  /// Why its states stay as stored although they were wanted by tensor; empty where none do. Those
  /// in files of ranks are in no catalog then: Checkpoint::has_unread_optimizer.
  std::string states_left;
  /// Why Checkpoint::common_state lost its settings of training, which were wanted; may be empty.
  std::string settings_left;
};

/// Whether the tensors are Megatron's under other names or in pieces: those of a MIMO model, or of
/// Megatron-FSDP.
[[nodiscard]] bool is_disguised(const Checkpoint& checkpoint);

/// Gives a MIMO model's tensors an ordinary model's names; the wrappers that its components had.
/// Where components of several families lie in the same places, it is the one whose rules fit the
/// run's arguments and the tensors, which may be a damaged model's. Errors: those of told_family,
/// run_arguments, families_with_routes and to_standard_names; kAmbiguousFamily where nothing tells.
[[nodiscard]] Result<Wrappers> name_components(const FamilyChoice& choice, const Checkpoint& source,
                                               std::span<const Mapping> mappings, Catalog& catalog);

/// The catalog of a Megatron checkpoint of any kind with the names and shapes that an ordinary
/// Megatron model's tensors have. `wrappers`: that the components of a MIMO model had. Reads no
/// payload. Errors: those of name_components and canonical_from_fsdp.
[[nodiscard]] Result<Catalog> megatron_catalog(const Checkpoint& checkpoint,
                                               const FamilyChoice& choice, Wrappers& wrappers,
                                               Notes& notes, bool accepts_loss = false);

/// Gives a checkpoint that catalog, and optimizer states as SourceModel::states says: which state
/// is whose follows from Megatron's rules and is proven, every master weight against its weight.
/// States for which there is no rule or no proof stay as stored, and SourceModel::states_left says
/// why. Errors: as above; those of reading.
[[nodiscard]] Status to_megatron(SourceModel& source, const FamilyChoice& choice, Notes& notes);

}  // namespace shardwright
