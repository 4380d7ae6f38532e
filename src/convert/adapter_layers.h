// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/notes.h"
#include "canonical/adapter_updates.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What to tell of an adapter that may not be whole: of layers that lack a module which others
/// have, though the base model has it there (a trainer may have saved one pipeline stage's only),
/// of modules that its config lists and none of its tensors is of, and of those that its tensors
/// are of and its config leaves out. `base`: the tensors of the base model, by Hugging Face's
/// names; without any, a layer is told that has nothing at all. `layers`: how many the base has;
/// those of numbers behind them are not adapted.
[[nodiscard]] Notes notes_on_gaps(const PeftAdapter& adapter, std::span<const TensorDesc> base,
                                  std::optional<std::int64_t> layers);

}  // namespace shardwright
