// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/arguments.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A statement of a run's arguments, or of a config.json, that the model's tensors contradict.
struct Contradiction {
  std::string argument;  ///< its name: `num_query_groups`
  std::string message;   ///< the whole sentence: what it says and what the tensors show
};

/// What came of holding statements against tensors.
struct ArgumentCheck {
  /// Names of the statements that these tensors can confirm or contradict. Where there is none,
  /// that nothing is contradicted says nothing.
  std::vector<std::string> held;
  std::vector<Contradiction> contradictions;
};

/// What the arguments of a Megatron run say of the model and its tensors contradict: sizes, flags
/// that decide which tensors exist, the vocabulary. No model family is needed for that.
///
/// `args`: Megatron's argparse Namespace, or the `model:` section of Bridge's run_config.yaml; what
/// they leave out is no statement. `canonical`: Megatron's tensors, one per layer. Of a multimodal
/// model the arguments describe the language model, so only its tensors are looked at; what differs
/// from layer to layer (heterogeneous models, hybrids) is held against the layers that have it.
/// One contradiction for each argument, with the first tensor that shows it. Pure.
[[nodiscard]] ArgumentCheck check_arguments(const Arguments& args,
                                            std::span<const TensorDesc> canonical);

/// The contradictions alone.
[[nodiscard]] std::vector<Contradiction> contradicted_arguments(
    const Arguments& args, std::span<const TensorDesc> canonical);

}  // namespace shardwright
