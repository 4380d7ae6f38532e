// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/argument_check.h"
#include "model/config.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// The canonical tensors of all of a Megatron checkpoint, by names and shapes; none where the names
/// are not Megatron's. Errors: those of canonical_from_fsdp; kLimit.
[[nodiscard]] Result<std::vector<TensorDesc>> canonical_of(const Checkpoint& source);

/// A Megatron checkpoint's arguments, or else its run_config.yaml, held against its tensors;
/// nothing where it has neither. All of its tensors are looked at, whatever a
/// conversion leaves out. `canonical` are those of a checkpoint that was read into other names than
/// its own (Megatron-FSDP's, a MIMO model's). Errors: those of reading run_config.yaml; kLimit.
[[nodiscard]] Result<ArgumentCheck> contradictions_of(const Checkpoint& source,
                                                      std::span<const TensorDesc> canonical);

/// kArgumentsContradict with what was found, the first few in full; `way_out` ends the message.
[[nodiscard]] Error contradiction_error(std::string_view path, std::string_view what,
                                        std::span<const Contradiction> found,
                                        std::string_view way_out);

/// What has to be changed in the arguments that a conversion from Megatron to Megatron carries
/// along; nothing where the tensors agree with them. With --hf-config they are corrected by that
/// config.json, else they go along as they are; a note tells either.
/// Errors: kArgumentsContradict where --hf-config contradicts the tensors too, and those of finding
/// its family.
[[nodiscard]] Result<ArgumentList> corrected_arguments(const ConvertRequest& request,
                                                       const Checkpoint& source,
                                                       std::vector<std::string>& notes);

/// Of a conversion of a Hugging Face model to Megatron, whose arguments would repeat config.json.
/// Error: kArgumentsContradict.
[[nodiscard]] Status check_config(std::string_view path, const HfConfig& config,
                                  std::span<const TensorDesc> hf);

}  // namespace shardwright
