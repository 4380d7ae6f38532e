// SPDX-License-Identifier: Apache-2.0
#include "tensor/strided_copy.h"

#include <cstring>

namespace shardwright {
namespace {

template <class T>
void copy_elements(std::int64_t count, const std::byte* source, std::int64_t source_stride,
                   std::byte* target, std::int64_t target_stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, source + i * source_stride, sizeof value);
    std::memcpy(target + i * target_stride, &value, sizeof value);
  }
}

struct Run {
  std::int64_t count;
  std::int64_t source_stride;
  std::int64_t target_stride;
  int element_bytes;
};

void copy_run(const Run& run, const std::byte* source, std::byte* target) {
  if (run.source_stride == run.element_bytes && run.target_stride == run.element_bytes) {
    std::memcpy(target, source, static_cast<std::size_t>(run.count * run.element_bytes));
    return;
  }
  switch (run.element_bytes) {
    case 1:
      return copy_elements<std::uint8_t>(run.count, source, run.source_stride, target,
                                         run.target_stride);
    case 2:
      return copy_elements<std::uint16_t>(run.count, source, run.source_stride, target,
                                          run.target_stride);
    case 4:
      return copy_elements<std::uint32_t>(run.count, source, run.source_stride, target,
                                          run.target_stride);
    case 8:
      return copy_elements<std::uint64_t>(run.count, source, run.source_stride, target,
                                          run.target_stride);
    default:
      for (std::int64_t i = 0; i < run.count; ++i) {
        std::memcpy(target + i * run.target_stride, source + i * run.source_stride,
                    static_cast<std::size_t>(run.element_bytes));
      }
  }
}

void copy_axes(const CopyLoops& loops, int axis, int element_bytes, const std::byte* source,
               std::byte* target) {
  const std::int64_t count = loops.shape[axis];
  const std::int64_t source_stride = loops.source_strides[axis];
  const std::int64_t target_stride = loops.target_strides[axis];
  if (axis + 1 == loops.shape.size()) {
    return copy_run({count, source_stride, target_stride, element_bytes}, source, target);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    copy_axes(loops, axis + 1, element_bytes, source + i * source_stride,
              target + i * target_stride);
  }
}

}  // namespace

CopyLoops collapse(const CopyLoops& loops) {
  CopyLoops joined;
  for (int axis = 0; axis < loops.shape.size(); ++axis) {
    if (loops.shape[axis] == 1) continue;
    const int last = joined.shape.size() - 1;
    const bool runs_on =
        last >= 0 &&
        joined.target_strides[last] == loops.target_strides[axis] * loops.shape[axis] &&
        joined.source_strides[last] == loops.source_strides[axis] * loops.shape[axis];
    if (runs_on) {
      joined.shape[last] *= loops.shape[axis];
      joined.target_strides[last] = loops.target_strides[axis];
      joined.source_strides[last] = loops.source_strides[axis];
    } else {
      joined.shape.push_back(loops.shape[axis]);
      joined.target_strides.push_back(loops.target_strides[axis]);
      joined.source_strides.push_back(loops.source_strides[axis]);
    }
  }
  return joined;
}

void strided_copy(const CopyLoops& loops, int element_bytes, const std::byte* source,
                  std::byte* target) {
  for (std::int64_t extent : loops.shape) {
    if (extent == 0) return;
  }
  const CopyLoops joined = collapse(loops);
  if (joined.shape.empty()) {
    std::memcpy(target, source, static_cast<std::size_t>(element_bytes));
    return;
  }
  copy_axes(joined, 0, element_bytes, source, target);
}

std::int64_t span_bytes(const Dims& shape, const Dims& strides, int element_bytes) {
  std::int64_t last = element_bytes;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return last;
}

}  // namespace shardwright
