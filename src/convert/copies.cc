// SPDX-License-Identifier: Apache-2.0
#include "convert/copies.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20;

// REQUIRES: one row-major chunk each, as safetensors files have.
Result<bool> are_equal(const StoredTensor& a, const StoredTensor& b, SourceFiles& files) {
  if (a.desc.dtype != b.desc.dtype || !(a.desc.shape == b.desc.shape)) return false;
  std::vector<std::byte> left(kStepBytes);
  std::vector<std::byte> right(kStepBytes);
  const ByteRange from = a.chunks.range(0);
  const ByteRange other = b.chunks.range(0);
  for (std::uint64_t done = 0; done < from.length; done += kStepBytes) {
    const std::size_t step = static_cast<std::size_t>(std::min(kStepBytes, from.length - done));
    SW_TRY(files.read_at(a.chunks.file(0), from.offset + done, std::span(left).first(step)));
    SW_TRY(files.read_at(b.chunks.file(0), other.offset + done, std::span(right).first(step)));
    if (!std::equal(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(step),
                    right.begin())) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<std::set<std::string, std::less<>>> find_differing_copies(std::span<const HfCopy> copies,
                                                                 const Catalog& catalog,
                                                                 SourceFiles& files) {
  std::set<std::string, std::less<>> differing;
  if (copies.empty()) return differing;
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) by_name.emplace(tensor.desc.name, &tensor);
  for (const HfCopy& copy : copies) {
    const auto repeated = by_name.find(copy.desc.name);
    const auto original = by_name.find(copy.original);
    if (repeated == by_name.end() || original == by_name.end()) {
      return fail(Code::kUnmatchedSource, "tensor {}: {} is not in the source checkpoint",
                  copy.desc.name, copy.original);
    }
    const bool equal = SW_TRY(are_equal(*repeated->second, *original->second, files));
    if (!equal) differing.insert(copy.desc.name);
  }
  return differing;
}

}  // namespace shardwright
