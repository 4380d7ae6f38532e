// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What PEFT's files call a tensor of an adapter that a run has saved by the name it has in the
/// model: `base_model.model.X.lora_A.weight` is `base_model.model.X.lora_A.default.weight` there,
/// with more of FSDP and torch.compile in it. nullopt for what is no adapter's, and for adapters of
/// other names than `default`.
[[nodiscard]] std::optional<std::string> peft_name_of_wrapped(std::string_view stored);

/// Whether all of these tensors but an optimizer's are an adapter's by such names: what is chosen
/// of a model that PEFT wrapped, or what a run saved without the base.
[[nodiscard]] bool holds_adapter_alone(const Catalog& catalog);

/// An adapter_config.json, and the file that says what is in it.
struct WrappedAdapterConfig {
  std::string text;
  std::string told_by;
};

/// The settings of an adapter in a run's own files: an adapter_config.json in the run's folder, in
/// its `lora_adapter` or in the folder above, else what is made of verl's lora_train_meta.json.
/// `tensors`: the adapter's, by PEFT's names. Errors: kConfigMissing without any of them;
/// kJsonCorrupt and kUnsupportedFormat for settings that no adapter can have; kShapeMismatch for
/// another rank than the tensors have.
[[nodiscard]] Result<WrappedAdapterConfig> config_of_wrapped_adapter(
    const Checkpoint& run, std::span<const TensorDesc> tensors);

}  // namespace shardwright
