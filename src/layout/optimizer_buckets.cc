// SPDX-License-Identifier: Apache-2.0
#include "layout/optimizer_buckets.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/fail.h"

namespace shardwright {
namespace {

// Elements; 128 bytes of 16-bit parameters.
constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t element) { return round_up(element, kAlignment); }

}  // namespace

bool is_shared_parameter(std::string_view name, std::int64_t pipeline, bool is_tied,
                         bool has_prediction_layers) {
  if (pipeline == 1 || !(is_tied || has_prediction_layers)) return false;
  return name.ends_with("word_embeddings.weight") ||
         (is_tied && name.ends_with("output_layer.weight"));
}

Result<std::int64_t> element_sum(std::span<const BufferedParameter> parameters) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // alignment and bytes still count
  std::int64_t sum = 0;
  for (const BufferedParameter& parameter : parameters) {
    const auto longer = checked_add(sum, aligned(std::min(parameter.elements, kMost)));
    if (!longer || *longer > kMost) {
      return fail(Code::kOptimizerUnsupported,
                  "tensor {}: found {} elements behind {} of others, expected a buffer that memory "
                  "can hold",
                  parameter.name, parameter.elements, sum);
    }
    sum += parameter.elements;
  }
  return sum;
}

std::vector<std::int64_t> bucket_sizes(std::span<const BufferedParameter> parameters,
                                       std::optional<std::int64_t> bucket_size) {
  std::vector<std::int64_t> sizes;
  std::int64_t end = 0;
  bool has_some = false;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const BufferedParameter& parameter = parameters[i];
    std::int64_t start = aligned(end);
    if (parameter.is_shared && has_some) {
      sizes.push_back(start);
      start = 0;
    }
    end = start + parameter.elements;
    has_some = true;
    if (parameter.is_shared || (bucket_size && end >= *bucket_size)) {
      sizes.push_back(end);
      end = 0;
      has_some = false;
    }
  }
  if (has_some) sizes.push_back(end);
  return sizes;
}

std::vector<std::vector<std::size_t>> buffers_of(std::span<const BufferedParameter> parameters) {
  std::vector<std::vector<std::size_t>> buffers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto holds = [&](const std::vector<std::size_t>& buffer) {
      const BufferedParameter& first = parameters[buffer.front()];
      return first.stage == parameters[i].stage && first.dtype == parameters[i].dtype;
    };
    const auto buffer = std::ranges::find_if(buffers, holds);
    if (buffer == buffers.end()) {
      buffers.push_back({i});
    } else {
      buffer->push_back(i);
    }
  }
  return buffers;
}

Result<std::vector<BufferSlot>> place_in_buckets(std::span<const BufferedParameter> parameters,
                                                 std::span<const std::int64_t> sizes) {
  std::vector<BufferSlot> slots(parameters.size());
  std::size_t bucket = 0;
  std::int64_t end = 0;
  const auto is_full = [&] { return end == sizes[bucket] || aligned(end) == sizes[bucket]; };
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const BufferedParameter& parameter = parameters[i];
    if (bucket < sizes.size() && end > 0 && is_full()) {
      ++bucket;
      end = 0;
    }
    const std::int64_t start = aligned(end);
    const std::int64_t room =
        bucket == sizes.size() ? 0 : std::max<std::int64_t>(sizes[bucket] - start, 0);
    if (bucket == sizes.size() || parameter.elements > room) {
      return fail(Code::kOptimizerUnsupported,
                  "tensor {}: found {} elements left in the optimizer's buckets, expected room for "
                  "its {}: they are another model's, or parameters were frozen, and nothing tells "
                  "which; convert without it (--optimizer drop), or save the run with "
                  "--dist-ckpt-optim-fully-reshardable, whose states have names",
                  parameter.name, room, parameter.elements);
    }
    slots[i] = {bucket, start};
    end = start + parameter.elements;
  }
  const bool is_at_end = sizes.empty() || (bucket + 1 == sizes.size() && end == sizes[bucket]);
  if (!is_at_end) {
    return fail(Code::kOptimizerUnsupported,
                "optimizer: found {} elements in bucket {} of {}, expected {} for the parameters "
                "of the model: they are another model's, or parameters were frozen, and nothing "
                "tells which; convert without it (--optimizer drop), or save the run with "
                "--dist-ckpt-optim-fully-reshardable, whose states have names",
                sizes[bucket], bucket, sizes.size(), end);
  }
  return slots;
}

Result<std::vector<std::int64_t>> first_elements(std::span<const BufferedParameter> parameters,
                                                 std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> begins = {0};
  for (const std::int64_t size : sizes) begins.push_back(begins.back() + size);
  std::vector<std::int64_t> first;
  for (const BufferSlot& slot : SW_TRY(place_in_buckets(parameters, sizes))) {
    first.push_back(begins[slot.bucket] + slot.first);
  }
  return first;
}

Result<std::vector<std::int64_t>> first_coalesced_elements(
    std::span<const BufferedParameter> parameters, std::int64_t elements,
    std::optional<std::int64_t> bucket_size) {
  for (const std::optional<std::int64_t>& limit : {bucket_size, std::optional<std::int64_t>()}) {
    const std::vector<std::int64_t> sizes = bucket_sizes(parameters, limit);
    if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == elements) {
      return first_elements(parameters, sizes);
    }
  }
  return first_elements(parameters, std::span(&elements, 1));
}

}  // namespace shardwright
