// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_number.h"

#include <cmath>
#include <cstring>

#include "codec/torch_record.h"
#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

// The storage of one number, generously.
constexpr std::uint64_t kMostNumberBytes = std::uint64_t{1} << 20;
constexpr double kMostCount = 1e15;

}  // namespace

Result<std::optional<std::int64_t>> read_torch_count(const ReadableFile& file,
                                                     const TorchFile& torch, pickle::Value value) {
  std::optional<double> number = value.as_double();
  if (is_tensor(value)) {
    const LocatedTensor place = SW_TRY(torch.locate(value));
    const auto elements = element_count(place.shape);
    if (!elements || *elements != 1 || place.dtype != DType::kF32) {
      return std::optional<std::int64_t>();
    }
    float element = 0;
    const std::string storage = SW_TRY(read_torch_storage(file, place, kMostNumberBytes));
    std::memcpy(&element, storage.data() + (place.range.offset - place.storage.offset),
                sizeof(element));
    number = element;
  }
  const bool is_count = number && *number >= 0 && *number <= kMostCount;
  if (!is_count || *number != std::trunc(*number)) return std::optional<std::int64_t>();
  return std::optional(static_cast<std::int64_t>(*number));
}

}  // namespace shardwright
