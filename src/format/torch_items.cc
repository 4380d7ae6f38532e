// SPDX-License-Identifier: Apache-2.0
#include "format/torch_items.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_item_reader.h"

namespace shardwright {
namespace {

struct Item {
  std::uint32_t file;
  std::uint32_t tensor;
  std::uint32_t chunk;
  std::uint64_t offset;
};

std::vector<Item> items_in_file_order(const Catalog& catalog, const Defects& defects) {
  std::vector<Item> items;
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    const StoredTensor& tensor = catalog.tensors[t];
    if (tensor.encoding != Encoding::kTorchItem) continue;
    for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
      // An empty shard's item holds nothing, and may not exist.
      if (tensor.chunks.box(c).is_empty()) continue;
      if (defects.is_lost(tensor.desc.name, c)) continue;
      items.push_back({tensor.chunks.file(c), t, c, tensor.chunks.range(c).offset});
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  return items;
}

// torch can write .distcp files whose tensors are safetensors files; only the file's first bytes
// say so.
bool begins_with_safetensors(const ReadableFile& file) {
  std::array<std::byte, sizeof(std::uint64_t) + 2> head{};
  if (file.size() < head.size() || !file.read_at(0, head)) return false;
  const auto length = load_le<std::uint64_t>(head.data());
  return length <= file.size() && head[8] == std::byte{'{'} && head[9] == std::byte{'"'};
}

Status locate_item(StoredTensor& tensor, const Item& item, TensorItemReader& reader) {
  const Chunk chunk = tensor.chunks[item.chunk];
  const auto describe = [&] { return fmt::format("tensor {}", tensor.desc.name); };
  Result<LocatedTensor> found = reader.read(chunk.range);
  if (!found) return std::unexpected(std::move(found).error().within(describe()));
  if (found->dtype != tensor.desc.dtype || !(found->shape == chunk.box.shape)) {
    return fail(Code::kChunkMismatch,
                "tensor {}: the archive of chunk {} holds {} {}, expected {} {}; the metadata and "
                "the file do not belong together, or torch wrote them wrong",
                tensor.desc.name, to_string(chunk.box), torch_name(found->dtype),
                to_string(found->shape), torch_name(tensor.desc.dtype), to_string(chunk.box.shape));
  }
  tensor.chunks.set_location(item.chunk, chunk.file, found->range);
  tensor.chunks.set_strides(item.chunk, found->strides);
  return {};
}

}  // namespace

Status locate_items(Catalog& catalog, SourceFiles& files, Defects& defects) {
  const std::vector<Item> items = items_in_file_order(catalog, defects);
  for (std::size_t i = 0; i < items.size();) {
    const std::uint32_t file = items[i].file;
    const std::shared_ptr<const ReadableFile> open = SW_TRY(files.get(file));
    TensorItemReader reader(*open);
    for (; i < items.size() && items[i].file == file; ++i) {
      StoredTensor& tensor = catalog.tensors[items[i].tensor];
      Status status = locate_item(tensor, items[i], reader);
      if (status) continue;
      if (begins_with_safetensors(*open)) {
        return fail(Code::kUnsupportedFormat,
                    "{}: found tensors as safetensors, expected items of torch.save; re-save with "
                    "SerializationFormat.TORCH_SAVE",
                    catalog.files[file]);
      }
      SW_TRY(
          defects.report(std::unexpected(std::move(status).error().within(catalog.files[file]))));
      defects.lose(tensor.desc.name, items[i].chunk);
      reader = TensorItemReader(*open);
    }
  }
  for (StoredTensor& tensor : catalog.tensors) tensor.encoding = Encoding::kRaw;
  return {};
}

Status locate_items(Catalog& catalog, SourceFiles& files) {
  Defects first;
  return locate_items(catalog, files, first);
}

}  // namespace shardwright
