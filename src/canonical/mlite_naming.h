// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/notes.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Makes an MLite checkpoint the Megatron checkpoint that it nearly is: `wanted`, a part of its
/// catalog, gets Megatron's names, with experts stacked, rows of gate and up that lie
/// rank by rank put in the model's order, and rows that Megatron has apart taken apart; arguments
/// follow from the model's config.json. Buffers that MLite does not save are those of the model
/// that the request's `hf_config_dir` has, if its weights are there. Objects, and tensors that are
/// no parameters of the model, are left out. REQUIRES: payloads are located.
///
/// Errors: those of global_from_mlite; kConfigMissing without config.json; kNoFamily for families
/// whose names in MLite are not known; kUnmatchedSource with the tensor that has another name;
/// kConfigMissing for buffers that are nowhere; kShapeMismatch for rows that tensor ranks cannot
/// have shared out.
[[nodiscard]] Status name_mlite_as_megatron(const ConvertRequest& request, Checkpoint& checkpoint,
                                            Catalog& wanted, Notes& notes);

/// Whether the caller gives sizes of an MLite checkpoint's run.
[[nodiscard]] bool tells_sizes(const SourceOptions& options);

/// kUsage for sizes of an MLite checkpoint's run that `paths` did not take.
[[nodiscard]] std::unexpected<Error> refuse_sizes(std::string_view paths);

}  // namespace shardwright
