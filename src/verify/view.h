// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/notes.h"
#include "canonical/source_model.h"
#include "model/vocabulary_rows.h"
#include "plan/draft.h"
#include "shardwright/reader.h"
#include "shardwright/verify.h"

namespace shardwright {

/// A checkpoint's tensors as they are compared and hashed: each is a target of `plan`, whose
/// recipes read the checkpoint. The plan is proven; it has no files.
struct View {
  Checkpoint checkpoint;  ///< its catalog is in the plan
  Naming naming = Naming::kStored;
  Plan plan;
  std::string family;
  /// What the view has of the vocabulary where the checkpoint may have more.
  VocabularyRows vocabulary;
  std::int64_t stored_rows = 0;  ///< of the highest vocabulary tensor, padding included; kCanonical
  /// Whether all optimizer states are states of the model's tensors; else they are in buckets or
  /// flattened, which belongs to one layout.
  bool has_states_by_tensor = true;
  std::string states_left;    ///< else why, where it was tried
  std::string settings_left;  ///< why the settings of training were not read, if they were not
  /// Why an MLite checkpoint is seen as it is stored: nothing tells the sizes of its run.
  std::optional<Error> unordered;
  bool took_sizes = false;  ///< that the caller gave for an MLite checkpoint
  Notes notes;
};

/// What of a checkpoint a view changes besides names.
struct ViewUse {
  StateUse states = StateUse::kAsStored;
  /// Whether weights of convolutions that are stored as those of linears get the family's shapes.
  bool unfolds_convolutions = true;
  /// Whether all replicas are compared; else ReplicasOnRead compares those of what is read.
  bool compares_replicas = true;
  /// Whether padding rows of the vocabulary stay.
  bool keeps_padding = false;
  /// Whether Checkpoint::common_state gets the parameter groups that other entries hold.
  bool reads_settings = false;
};

/// Makes drafts the targets of a plan without files, sorted by name, each in one piece.
void take_whole(std::vector<DraftTensor> tensors, Plan& plan);

/// What its tensors can be seen as: canonical for Megatron's names and for Hugging Face models, and
/// for MLite's names where the caller gives the model's config.json.
[[nodiscard]] Naming natural_naming(const Checkpoint& checkpoint, const FamilyChoice& choice);

/// Whether both are Hugging Face models that compare by the names that are stored. Those in other
/// files than safetensors may have names of their own, and are compared as canonical tensors then,
/// where a config.json tells what they are.
[[nodiscard]] bool compare_as_hf(const Checkpoint& left, const Checkpoint& right,
                                 const FamilyChoice& choice);

/// Makes the view of an opened checkpoint. Payloads are located and, for copies in a Hugging Face
/// model, compared. An MLite checkpoint is put in order first, with the sizes of its run that
/// `options` give where it has such sizes. Replicas are compared, optimizer states among them,
/// where `use` says so. Errors: kReplicasDiffer, kReplicaKeys, those of reading, of the proof, of
/// finding the family (kCanonical of a Hugging Face model only).
[[nodiscard]] Result<View> make_view(Checkpoint checkpoint, Naming naming,
                                     const ProofOptions& options, const ViewUse& use = {});

/// Rows of the highest of its vocabulary tensors; 0 where it has none.
[[nodiscard]] std::int64_t vocabulary_height(const View& view);

/// Whether the run of a view leaves open which of its rows of the vocabulary are padding, but for
/// the first, of which it tells no more than `rows`.
[[nodiscard]] bool may_end_at(const View& view, std::int64_t rows);

/// Makes vocabulary tensors of both sides equally high: what one side knows to be padding is
/// padding on the other side too. Notes tell.
void cut_vocabulary(View& view, const VocabularyRows& vocabulary);

}  // namespace shardwright
