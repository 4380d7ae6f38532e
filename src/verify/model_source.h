// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "shardwright/reader.h"
#include "verify/tensor_source.h"

namespace shardwright {

/// A checkpoint by Megatron's names, one tensor per layer, whatever the format; stacks are found by
/// name only. The plan is proven.
/// Errors: kNoFamily for names of no model, those of make_view().
[[nodiscard]] Result<std::unique_ptr<TensorSource>> source_by_megatron_names(
    std::string_view path, const ReadOptions& options);

/// A checkpoint by Hugging Face's names, made of the very drafts that a conversion to `hf` is made
/// of; the plan is proven. Replicas of a tensor are compared when it is first read, but those of
/// the legacy format. Errors: those of draft_conversion().
[[nodiscard]] Result<std::unique_ptr<TensorSource>> source_by_hf_names(std::string_view path,
                                                                       const ReadOptions& options);

}  // namespace shardwright
