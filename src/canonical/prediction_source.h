// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "canonical/model_facts.h"
#include "plan/draft.h"

namespace shardwright {

/// The layers for multi-token prediction of another Hugging Face checkpoint of the same model.
struct PredictionSource {
  Checkpoint checkpoint;
  std::shared_ptr<const Directory> folder;  ///< the checkpoint's
  std::vector<std::string> tensors;         ///< names, copies included
  std::vector<HfCopy> copies;  ///< of them: those that repeat a tensor of the model bit by bit
};

/// Whether a conversion can take prediction layers from elsewhere: one of its sides must have a
/// family's names for them. Error: kUsage.
[[nodiscard]] Status check_prediction_source(const ConvertRequest& request, bool is_from_hf);

/// kUsage for a source that has prediction layers itself, such as this tensor.
[[nodiscard]] std::unexpected<Error> refuse_own_layers(const ConvertRequest& request,
                                                       std::string_view tensor);

/// Opens ConvertRequest::mtp_from. Errors: those of opening; kUsage for what is no HF model, has no
/// such layers or has them quantised; kShapeMismatch with the size for a model of another family or
/// of other sizes than `facts` says.
[[nodiscard]] Result<PredictionSource> open_prediction_source(const ConvertRequest& request,
                                                              const ModelFacts& facts);

/// Adds tensors of `from`, by name, to a source's catalog and to `selected`, the part of it that is
/// converted: both have the same files.
void add_prediction_tensors(const std::vector<std::string>& names, const PredictionSource& from,
                            Checkpoint& source, Catalog& selected);

/// The layers for a Hugging Face target: `from`'s tensors, and for copies of a tensor of the model
/// that tensor as it is exported. REQUIRES: `from`'s tensors were added to the catalog.
[[nodiscard]] std::vector<DraftTensor> draft_prediction_layers(
    const PredictionSource& from, const Catalog& selected, const DraftOptions& options,
    std::span<const DraftTensor> exported);

/// `15 tensors of prediction layers are taken from DIR: mtp.fc.weight, ...`.
[[nodiscard]] std::string taken_note(const PredictionSource& from);

/// config.json with the numbers of prediction layers that `reference`, another one, speaks of, at
/// its top or of its language model. The same text where nothing changes. Error: kJsonCorrupt.
[[nodiscard]] Result<std::string> with_prediction_numbers(const std::string& config,
                                                          const std::string& reference);

}  // namespace shardwright
