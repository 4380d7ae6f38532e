// SPDX-License-Identifier: Apache-2.0
// The proof of a plan: chunks that may lie anyhow, against counting each element.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "expect.h"
#include "shardwright/catalog.h"
#include "tensor/coverage.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostExtent = 7;
constexpr std::size_t kMostChunks = 40;

// How often each element is stored, one by one: slow, and plainly right.
std::vector<int> count_elements(const StoredTensor& tensor) {
  const std::int64_t rows = tensor.desc.shape[0];
  const std::int64_t columns = tensor.desc.shape[1];
  std::vector<int> counts(static_cast<std::size_t>(rows * columns));
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const Box box = tensor.chunks.box(c);
    for (std::int64_t i = 0; i < box.shape[0]; ++i) {
      for (std::int64_t j = 0; j < box.shape[1]; ++j) {
        const std::int64_t at = (box.origin[0] + i) * columns + box.origin[1] + j;
        ++counts[static_cast<std::size_t>(at)];
      }
    }
  }
  return counts;
}

void read(const std::string& bytes) {
  if (bytes.size() < 2) return;
  const auto number = [&](std::size_t i) {
    return static_cast<std::int64_t>(static_cast<unsigned char>(bytes[i]) % kMostExtent);
  };
  StoredTensor tensor;
  tensor.desc = {"t", DType::kU8, {number(0) + 1, number(1) + 1}};
  tensor.chunks = ChunkList(2);
  const Box whole = Box::whole(tensor.desc.shape);
  for (std::size_t i = 2; i + 3 < bytes.size() && tensor.chunks.size() < kMostChunks; i += 4) {
    Box box = whole;
    for (int axis = 0; axis < 2; ++axis) {
      const auto at = i + static_cast<std::size_t>(2 * axis);
      box.origin[axis] = std::min(number(at), whole.shape[axis]);
      box.shape[axis] = std::min(number(at + 1), whole.shape[axis] - box.origin[axis]);
    }
    const auto length = static_cast<std::uint64_t>(box.volume());
    tensor.chunks.push_back({box, 0, {0, length}, Dims()});
  }
  const std::vector<int> counts = count_elements(tensor);
  const bool is_once = std::ranges::all_of(counts, [](int count) { return count == 1; });
  const auto defects = coverage_defects(tensor, Replicas::kForbidden, 10);
  expect(defects.has_value(), "a tensor with a size can be checked");
  expect(defects->empty() == is_once, "what is stored exactly once is sound, and nothing else");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
