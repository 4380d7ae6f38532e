// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/differing_settings.h"
#include "model/interleaved_gates.h"
#include "model/mapping_file.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// What a mapping needs to know about the model at hand, and where it was found.
struct ModelFacts {
  const Mapping* mapping = nullptr;
  ModelSizes sizes;
  std::optional<HfConfig> config;  ///< absent where only Megatron's arguments exist
  std::string config_text;         ///< of config.json; written by us if `config_is_ours`
  bool config_is_ours = false;
  bool has_prediction_layers = false;  ///< among the Megatron tensors
  StoredGates gates;                   ///< of the Megatron tensors
  /// Where config.json says otherwise than the run's arguments; it is used all the same.
  std::vector<DifferingSetting> differing;
  std::string not_held;  ///< why they are not held against it, a sentence; empty where they are
};

/// A note on those.
[[nodiscard]] std::string differing_note(const std::vector<DifferingSetting>& differing);

/// Of --hf-config, else of the checkpoint; empty where neither has one.
[[nodiscard]] Result<std::string> config_text_of(const FamilyChoice& choice,
                                                 const Checkpoint& source);

/// Of the training run; where the checkpoint has none, those of Bridge's run_config.yaml (of MIMO's
/// language model). Empty where neither is there. Error: kYamlCorrupt.
[[nodiscard]] Result<Arguments> run_arguments(const Checkpoint& source);

/// Those of run_config.yaml alone, whatever arguments there are. Error: kYamlCorrupt.
[[nodiscard]] Result<Arguments> run_config_arguments(const Checkpoint& source);

/// Rows of the vocabulary that mean something, where a run's arguments tell them from padding.
[[nodiscard]] std::optional<std::int64_t> true_vocabulary(const Arguments& arguments);

/// The rows that a run's arguments tell of where they leave open which of the others are padding:
/// its null tokenizer may count a token more than it is told.
[[nodiscard]] std::optional<std::int64_t> open_vocabulary(const Arguments& arguments);

/// Family and sizes, in this order: --family; --hf-config; the family that the checkpoint records;
/// the config.json that it is or carries; Bridge's run_config.yaml or Megatron's args together with
/// the tensors' names. A model id or path inside a checkpoint is never opened. `canonical` are the
/// Megatron tensors, empty for an HF source. Guessed config fields are told in `notes`.
[[nodiscard]] Result<ModelFacts> find_model_facts(const FamilyChoice& choice,
                                                  const Checkpoint& source,
                                                  std::span<const Mapping> mappings,
                                                  std::span<const TensorDesc> canonical,
                                                  std::vector<std::string>& notes);

}  // namespace shardwright
