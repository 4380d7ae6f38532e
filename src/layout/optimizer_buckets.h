// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// A parameter in a flat buffer of the distributed optimizer.
struct BufferedParameter {
  std::string name;
  std::int64_t elements = 0;
  /// A word embedding that two pipeline stages share: it has a bucket of its own.
  bool is_shared = false;
  std::size_t stage = 0;  ///< the virtual stage that it is part of
  DType dtype = DType::kBF16;
};

/// Whether two pipeline stages have a word embedding each: where the output layer is tied to it,
/// and where layers for multi-token prediction need it. An idle head (has_idle_head) is not tied.
/// Source: setup_embeddings_and_output_layer in
/// megatron/core/models/common/language_module/language_module.py.
[[nodiscard]] bool is_shared_parameter(std::string_view name, std::int64_t pipeline, bool is_tied,
                                       bool has_prediction_layers);

/// How many elements all of them have. Error: kOptimizerUnsupported where no memory holds as many.
[[nodiscard]] Result<std::int64_t> element_sum(std::span<const BufferedParameter> parameters);

/// Where a parameter's elements begin.
struct BufferSlot {
  std::size_t bucket = 0;
  std::int64_t first = 0;  ///< element of the bucket
};

/// Which parameters share a buffer: those of one virtual stage and dtype, buffers in the order of
/// their first parameter. `parameters` stand by stage. Source: group_params_for_buffers.
[[nodiscard]] std::vector<std::vector<std::size_t>> buffers_of(
    std::span<const BufferedParameter> parameters);

/// The sizes of the buckets, without the padding at their ends, that Megatron makes of
/// `parameters`, which stand in the order in which torch lists them: filled from the last to the
/// first, each begun at a multiple of 64; closed where `bucket_size` elements are reached, and
/// around shared ones. Source: _ParamAndGradBuffer in
/// megatron/core/distributed/param_and_grad_buffer.py.
[[nodiscard]] std::vector<std::int64_t> bucket_sizes(std::span<const BufferedParameter> parameters,
                                                     std::optional<std::int64_t> bucket_size);

/// The places of the parameters in buckets of the sizes that are stored: each size must be reached
/// exactly, or but for the alignment of what follows. Parallel to `parameters`. Error:
/// kOptimizerUnsupported with the parameter at which the sizes part.
[[nodiscard]] Result<std::vector<BufferSlot>> place_in_buckets(
    std::span<const BufferedParameter> parameters, std::span<const std::int64_t> sizes);

/// The first element of each parameter in buckets of these sizes that stand one behind the other.
/// Errors: as place_in_buckets.
[[nodiscard]] Result<std::vector<std::int64_t>> first_elements(
    std::span<const BufferedParameter> parameters, std::span<const std::int64_t> sizes);

/// The same where only the sum of the sizes is known, and perhaps the run's `bucket_size`: the
/// boundaries are those that the rule makes, and must make up `elements`.
[[nodiscard]] Result<std::vector<std::int64_t>> first_coalesced_elements(
    std::span<const BufferedParameter> parameters, std::int64_t elements,
    std::optional<std::int64_t> bucket_size);

}  // namespace shardwright
