// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/notes.h"
#include "layout/lost_parts.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// A checkpoint's tensors as those of a Megatron model, without payloads: what its names and shapes
/// show to be lost.
struct ModelOutline {
  std::vector<LostPart> lost;  ///< what only its own names tell; then nobody need look further
  /// The tensors under Megatron's names, without chunks; nullopt where these can't be told.
  std::optional<Catalog> tensors;
};

/// Weights that a checkpoint has twice: as the model computed with them, and in float32.
struct WeightPairs {
  Catalog pairs;     ///< each weight, and the other as its master weight; empty: there are none
  std::string file;  ///< that has the weights
};

/// How a format has a Megatron model that is put down otherwise than torch_dist has it: under other
/// names, in pieces, with states in files of their own. This class itself is torch_dist's form, to
/// which nothing has to be done. Thread-safe: forms have no state.
class ModelForm {
 public:
  ModelForm() = default;
  virtual ~ModelForm() = default;
  ModelForm(const ModelForm&) = delete;
  ModelForm& operator=(const ModelForm&) = delete;

  /// Reads optimizer states that opening left in files of their own into the catalog, under
  /// torch_dist's names, and their parameter groups into the common state. REQUIRES:
  /// Checkpoint::has_unread_optimizer. Errors: kOptimizerUnsupported with what no rule knows; those
  /// of reading, of each file one, told to `defects`.
  [[nodiscard]] virtual Status read_states(Checkpoint& checkpoint, Defects& defects) const;

  /// The tensors as an ordinary Megatron model has them, with the states that are stored by tensor.
  /// `accepts_loss`: those that are there will do. REQUIRES: SourceTraits::has_module_pieces.
  /// Errors: kUnmatchedSource for pieces that are missing, kDuplicateName, kLossySource.
  [[nodiscard]] virtual Result<Catalog> megatron_catalog(const Checkpoint& checkpoint,
                                                         bool accepts_loss, Notes& notes) const;

  /// Whether the optimizer's states in a catalog that is stored so have numbers, of which rules say
  /// whose they are: the names that they get are to be proven (canonical/derived_states.h).
  [[nodiscard]] virtual bool has_numbered_states(const Catalog& stored) const;

  /// Makes a Megatron source of one for a conversion: `wanted`, what is converted of it, becomes
  /// such tensors, and the training state a common state. REQUIRES: payloads are located. Errors:
  /// as megatron_catalog; kStateUnreadable; kOptimizerUnsupported where states are wanted that no
  /// rule knows.
  [[nodiscard]] virtual Status to_megatron(const ConvertRequest& request, Checkpoint& checkpoint,
                                           Catalog& wanted, Notes& notes) const;

  /// Bytes of a common.pt with the training state, the optimizer's parameter groups among it; empty
  /// where there is none. Errors: kStateUnreadable.
  [[nodiscard]] virtual Result<std::string> common_state(const Checkpoint& checkpoint,
                                                         Notes& notes) const;

  /// The iteration that the training state says it is of. Errors: those of reading.
  [[nodiscard]] virtual Result<std::optional<std::int64_t>> iteration(
      const Checkpoint& checkpoint) const;

  /// What a training state that is stored entry by entry lacks or contradicts.
  [[nodiscard]] virtual std::vector<Error> state_defects(const Checkpoint& checkpoint) const;

  /// Whether files beside the states say that the optimizer keeps two moments of each parameter
  /// that it trains, and that it has made a step. Errors: those of reading.
  [[nodiscard]] virtual Result<bool> keeps_two_moments(const Checkpoint& checkpoint) const;

  /// Whether layers of one name replaced each other when it was saved. Error: kLossySource.
  [[nodiscard]] virtual Status check_layers(const Checkpoint& checkpoint) const;

  /// REQUIRES: SourceTraits::has_module_pieces. Errors: none of the checkpoint's.
  [[nodiscard]] virtual ModelOutline outline(const Checkpoint& checkpoint) const;

  /// Whether `catalog`, with experts and layers as ranks numbered them, can be put in order, or
  /// what is lost of it is accepted. Errors: kLossySource, kUsage for sizes that do not agree.
  [[nodiscard]] virtual Status check_order(const Catalog& catalog,
                                           const SourceOptions& options) const;

  /// The same tensors with experts and layers numbered through. REQUIRES: payloads are located.
  /// Errors: as check_order; kUnmatchedSource.
  [[nodiscard]] virtual Result<Catalog> in_order(const Catalog& catalog,
                                                 const SourceOptions& options, Notes& notes) const;

  /// What of the tensors in `catalog` is there a second time as the model computed with it. Errors:
  /// those of reading.
  [[nodiscard]] virtual Result<WeightPairs> weights_stored_twice(const Checkpoint& checkpoint,
                                                                 const Catalog& catalog) const;
};

/// That of torch_dist.
[[nodiscard]] const ModelForm& ordinary_form();

}  // namespace shardwright
