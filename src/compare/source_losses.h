// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// What names, shapes and the run's arguments show that a source has lost, a sentence each: layers
/// of a Megatron model (of Megatron-FSDP too), experts that its routers count, tensors that a
/// module never lacks, stages that replaced each other. Of Hugging Face models the family's mapping
/// knows that, of MLite's checkpoints global_from_mlite. Error: kLimit for names that claim more
/// than any model has.
[[nodiscard]] Result<std::vector<std::string>> losses_of(const Checkpoint& source);

/// Refuses to convert such a source as if it were whole. `wanted` is what of it is converted: where
/// no experts are, those that are lost do not matter. With ConvertRequest::accept_loss notes say
/// what is lost, and elements that no chunk stores are refused with the names of their tensors:
/// what was there can't be said. Errors: kLossySource, kHole, those of losses_of.
[[nodiscard]] Status check_losses(const ConvertRequest& request, const Checkpoint& source,
                                  const Catalog& wanted, std::vector<std::string>& notes);

/// The error that ended a conversion before anything was written. Where a loss is behind it in
/// spite of ConvertRequest::accept_loss, it says why that could not be accepted, and the way out.
[[nodiscard]] Error why_not_accepted(const ConvertRequest& request, Error error);

}  // namespace shardwright
