// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether a checkpoint stores anything at all: one tensor with one element. What has none is
/// neither proven nor converted, hashed or equal to anything, whatever its index says. `path` is
/// for the message. Error: kNothingStored.
[[nodiscard]] Status check_something_stored(const Catalog& catalog, std::string_view path);

/// Megatron loads nothing without its dict of plain values. Error: kStateUnreadable where nothing
/// is there for it; what is there and can't be read is told when a checkpoint is opened.
[[nodiscard]] Status check_common_state(const Checkpoint& checkpoint);

/// Whether it has tensors, and all of them are optimizer states.
[[nodiscard]] bool holds_states_alone(const Catalog& catalog);

/// Of a checkpoint that holds optimizer states alone, as verl saves them with mbridge: the folder
/// beside it that holds the model, a Hugging Face one; nothing for others and where there is none.
[[nodiscard]] std::optional<std::string> model_beside_states(const Checkpoint& checkpoint);

/// What is to be told of a checkpoint that holds optimizer states alone, as verl and accelerate
/// save them beside the weights; empty for others.
[[nodiscard]] std::string note_on_states_alone(const Checkpoint& checkpoint);

}  // namespace shardwright
