// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What a run's master weights are to its weights.
enum class MasterForm : std::uint8_t {
  kRounded,     ///< float32 numbers, which the weights are rounded from
  kNotRounded,  ///< float16 numbers, or the weights are FP8's: neither gives the other
  kRemainders   ///< the lower halves of such numbers, where weights are bfloat16
};

/// The form of the master weights in `catalog`, by their types and the run's arguments, and where
/// these leave it open by the values of one matrix: a precision-aware optimizer keeps remainders of
/// int16 (store_param_remainders), which Megatron copies into float32 buffers in some of its forms.
/// Errors: of reading.
/// Source: get_parameter_state_dp_zero and sharded_param_state_fs_model_space in
/// megatron/core/optimizer/distrib_optimizer.py.
[[nodiscard]] Result<MasterForm> form_of_masters(const Arguments& arguments, const Catalog& catalog,
                                                 SourceFiles& files);

/// Whether a master weight is a remainder where the form is kRemainders. `weight`: the type of its
/// weight.
[[nodiscard]] bool is_remainder(const TensorDesc& master, DType weight);

/// What to say of masters that nothing is held against; empty where they are. As a sentence.
[[nodiscard]] std::string_view note_on_form(MasterForm form);

}  // namespace shardwright
