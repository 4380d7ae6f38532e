// SPDX-License-Identifier: Apache-2.0
#include "cli/byte_compare.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include "base/fail.h"

namespace shardwright::cli {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;

using TensorsByName = std::map<std::string_view, const StoredTensor*>;

TensorsByName by_name(const Catalog& catalog) {
  TensorsByName tensors;
  for (const StoredTensor& tensor : catalog.tensors) tensors.emplace(tensor.desc.name, &tensor);
  return tensors;
}

// One side's tensor, readable as one run of bytes.
struct WholeTensor {
  std::unique_ptr<ReadableFile> file;
  ByteRange range;
};

Result<WholeTensor> open_whole(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const bool is_whole = tensor.chunks.size() == 1 && tensor.encoding == Encoding::kRaw &&
                        tensor.chunks[0].strides.empty() &&
                        tensor.chunks.box(0) == Box::whole(tensor.desc.shape);
  const std::int64_t bytes = SW_TRY(byte_count(tensor.desc.shape, tensor.desc.dtype));
  if (!is_whole || tensor.chunks.range(0).length != static_cast<std::uint64_t>(bytes)) {
    return fail(Code::kUnsupportedFormat,
                "{}: found tensor {} in pieces, expected it whole; convert it with --to hf first",
                checkpoint.location.path, tensor.desc.name);
  }
  const std::string& path = checkpoint.catalog.files[tensor.chunks.file(0)];
  return WholeTensor{SW_TRY(checkpoint.directory->open(path)), tensor.chunks.range(0)};
}

Result<bool> same_bytes(const WholeTensor& a, const WholeTensor& b) {
  std::vector<std::byte> left(static_cast<std::size_t>(std::min(kBlockBytes, a.range.length)));
  std::vector<std::byte> right(left.size());
  for (std::uint64_t at = 0; at < a.range.length; at += kBlockBytes) {
    const auto count = static_cast<std::size_t>(std::min(kBlockBytes, a.range.length - at));
    SW_TRY(a.file->read_at(a.range.offset + at, std::span(left).first(count)));
    SW_TRY(b.file->read_at(b.range.offset + at, std::span(right).first(count)));
    if (std::memcmp(left.data(), right.data(), count) != 0) return false;
  }
  return true;
}

std::string described(const TensorDesc& desc) {
  return fmt::format("{} {}", torch_name(desc.dtype), to_string(desc.shape));
}

}  // namespace

Result<ByteComparison> compare_bytes(const Checkpoint& a, const Checkpoint& b) {
  const TensorsByName left = by_name(a.catalog);
  const TensorsByName right = by_name(b.catalog);
  ByteComparison result;
  for (const auto& [name, tensor] : left) {
    const auto found = right.find(name);
    if (found == right.end()) {
      result.differences.push_back(translated("{} is missing", name));
      continue;
    }
    ++result.tensors;
    const TensorDesc& desc = tensor->desc;
    const TensorDesc& other = found->second->desc;
    if (desc.dtype != other.dtype || desc.shape != other.shape) {
      result.differences.push_back(
          translated("{} is {}, not {}", name, described(other), described(desc)));
      continue;
    }
    const WholeTensor one = SW_TRY(open_whole(a, *tensor));
    const WholeTensor two = SW_TRY(open_whole(b, *found->second));
    if (!SW_TRY(same_bytes(one, two))) {
      result.differences.push_back(translated("{} has other bytes", name));
    }
    result.bytes += one.range.length;
  }
  for (const auto& [name, tensor] : right) {
    if (!left.contains(name)) result.differences.push_back(translated("{} is new", name));
  }
  return result;
}

}  // namespace shardwright::cli
