// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwright/verify.h"

namespace shardwright {

/// In which names a checkpoint's tensors are seen.
enum class Naming : std::uint8_t {
  kCanonical,  ///< Megatron's, one tensor per layer; Hugging Face's through its mapping
  kStored,     ///< as they are stored
};

/// A checkpoint's tensors as they are compared and hashed: each is a target of `plan`, whose
/// recipes read the checkpoint. The plan is proven; it has no files.
struct View {
  Checkpoint checkpoint;  ///< its catalog is in the plan
  Naming naming = Naming::kStored;
  Plan plan;
  std::string family;
  /// Rows of the vocabulary that the view has where the checkpoint may have more.
  std::optional<std::int64_t> vocabulary;
  /// Whether all optimizer states are named and shaped as the model's tensors; else they are in
  /// buckets or flattened, which belongs to one layout.
  bool states_have_model_shapes = true;
  std::vector<std::string> notes;
};

/// The options in the words of a conversion, for what finds families.
[[nodiscard]] ConvertRequest request_of(const ProofOptions& options);

/// Whether a tensor of a canonical view is no weight that every form of the model has: an optimizer
/// state, or a value that only Hugging Face stores (`hf_extra.*`).
[[nodiscard]] bool is_beside_the_model(std::string_view name);

/// Whether a checkpoint is a Hugging Face model: not merely tensors in safetensors files.
[[nodiscard]] bool is_hf_model(const Checkpoint& checkpoint);

/// What its tensors can be seen as: canonical for Megatron's names and for Hugging Face models.
[[nodiscard]] Naming natural_naming(const Checkpoint& checkpoint);

/// Makes the view of an opened checkpoint. Payloads are located and, for copies in a Hugging Face
/// model, compared. Errors: those of reading, of the proof, of finding the family (kCanonical of a
/// Hugging Face model only).
[[nodiscard]] Result<View> make_view(Checkpoint checkpoint, Naming naming,
                                     const ProofOptions& options);

/// Makes vocabulary tensors of both sides equally high: what one side knows to be padding is
/// padding on the other side too. Notes tell.
void cut_vocabulary(View& view, std::int64_t rows);

}  // namespace shardwright
