// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "codec/pickle_value.h"

namespace shardwright {

/// Whether an `_extra_state`, or an entry of one, says anything: the scales and amax histories of
/// Transformer Engine's fp8 do, as a tensor of bytes or a BytesIO. None and empty ones, which all
/// other precisions save, don't. (transformer_engine/pytorch/module/base.py, get_extra_state)
[[nodiscard]] bool holds_module_state(pickle::Value saved);

/// That those of which `where` is one are left out, as a sentence.
[[nodiscard]] std::string module_state_note(std::string_view where);

}  // namespace shardwright
