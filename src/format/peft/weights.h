// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What PEFT calls the file of an adapter's tensors: as safetensors, and as torch.save writes it.
inline constexpr std::string_view kPeftWeightsFile = "adapter_model.safetensors";
inline constexpr std::string_view kPeftTorchFile = "adapter_model.bin";

/// The one that is read of a folder that has files of such names: PEFT prefers the safetensors.
/// Empty where it has neither.
[[nodiscard]] std::string_view peft_weights_in(
    const std::function<bool(std::string_view name)>& has_file);

/// Reads an adapter's tensors into the checkpoint's catalog, and what its file is like into its
/// traits; nothing that a pickle asks for is run. Notes tell what is left out. REQUIRES: the
/// checkpoint's files are those of `folder`, and none is known yet. Returns the file's name.
/// Errors: kNotFound where there is none; those of the file, as far as `defects` lets them through.
[[nodiscard]] Result<std::string> read_peft_weights(const Directory& folder, Checkpoint& checkpoint,
                                                    Defects& defects);

}  // namespace shardwright
