// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/peft/adapter.h"

namespace shardwright {

/// Over which axis of a parameter's matrices an adapter has A, where their shapes don't tell.
enum class ExpertSide : std::uint8_t {
  kInputs,
  kOutputs,
  kSecondAxis,  ///< whatever it is: PEFT before 0.19
  kUnknown,     ///< the inputs, or the second axis in modules that don't say that this is theirs
};

/// Over what A is of a parameter whose matrices are square. Where the other parameter of these
/// experts is trained too, which is not square then, that shows it; else the version of PEFT may.
[[nodiscard]] ExpertSide side_of_square(const PeftAdapter& adapter, const LoraParameter& parameter);

[[nodiscard]] bool is_square(const PeftAdapter& adapter, const LoraParameter& parameter);

/// Experts one by one are [outputs, inputs], so A must be over the inputs. Error: refuse_square.
[[nodiscard]] Status check_one_by_one(const PeftAdapter& adapter, const LoraParameter& parameter);

/// kUnsupportedFormat: nothing tells over what A is.
[[nodiscard]] std::unexpected<Error> refuse_square(const PeftAdapter& adapter,
                                                   const LoraParameter& parameter);

}  // namespace shardwright
