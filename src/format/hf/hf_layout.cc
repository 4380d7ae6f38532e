// SPDX-License-Identifier: Apache-2.0
#include "format/hf/hf_layout.h"

#include <unordered_set>

#include "base/fail.h"
#include "codec/safetensors_header.h"
#include "format/hf_index.h"

namespace shardwright {
namespace {

// The tensors of each file, by position.
Result<std::vector<std::vector<std::size_t>>> fill_shards(const std::vector<TensorDesc>& tensors,
                                                          std::uint64_t max_shard_bytes) {
  std::vector<std::vector<std::size_t>> shards(1);
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(SW_TRY(byte_count(tensors[i].shape, tensors[i].dtype)));
    if (!shards.back().empty() && filled + bytes > max_shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(i);
    filled += bytes;
  }
  return shards;
}

std::string shard_name(std::string_view stem, std::size_t index, std::size_t count) {
  if (count == 1) return fmt::format("{}.safetensors", stem);
  return fmt::format("{}-{:05}-of-{:05}.safetensors", stem, index + 1, count);
}

}  // namespace

Result<HfLayout> layout_hf(const std::vector<TensorDesc>& tensors, std::uint64_t max_shard_bytes,
                           std::string_view stem) {
  std::unordered_set<std::string_view> names;
  for (const TensorDesc& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return fail(Code::kDuplicateName, "tensor {}: would be written twice", tensor.name);
    }
  }
  HfLayout layout;
  std::vector<ByteRange> places(tensors.size());
  std::vector<std::uint32_t> file_of(tensors.size());
  const auto shards = SW_TRY(fill_shards(tensors, max_shard_bytes));
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    std::vector<TensorDesc> content;
    for (const std::size_t i : shards[shard]) content.push_back(tensors[i]);
    SafetensorsLayout file = SW_TRY(layout_safetensors(content, {{"format", "pt"}}));
    const std::uint32_t index = static_cast<std::uint32_t>(shard);
    for (std::size_t k = 0; k < content.size(); ++k) {
      places[shards[shard][k]] = file.ranges[k];
      file_of[shards[shard][k]] = index;
    }
    layout.catalog.files.push_back(shard_name(stem, shard, shards.size()));
    layout.file_sizes.push_back(file.file_bytes);
    layout.literals.push_back({index, 0, std::move(file.header)});
  }
  layout.catalog.tensors.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    StoredTensor stored{tensors[i], ChunkList(tensors[i].shape.size()), Encoding::kRaw};
    stored.chunks.push_back({Box::whole(tensors[i].shape), file_of[i], places[i], {}});
    layout.catalog.tensors.push_back(std::move(stored));
  }
  if (shards.size() > 1) layout.index = write_hf_index(layout.catalog);
  return layout;
}

}  // namespace shardwright
