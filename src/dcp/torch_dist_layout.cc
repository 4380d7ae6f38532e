// SPDX-License-Identifier: Apache-2.0
#include "dcp/torch_dist_layout.h"

#include <fmt/core.h>

#include <array>
#include <map>
#include <set>
#include <utility>

#include "codec/torch_item.h"
#include "dcp/dcp_metadata.h"

namespace shardwright {
namespace {

// Hands out consecutive space in one file per rank.
class Files {
 public:
  explicit Files(TorchDistLayout& layout) : layout_(layout) {}

  std::uint32_t of_rank(std::int64_t rank) {
    const auto [found, is_new] = by_rank_.try_emplace(rank, layout_.catalog.files.size());
    if (is_new) {
      layout_.catalog.files.push_back(fmt::format("__{}_0.distcp", rank));
      layout_.file_sizes.push_back(0);
    }
    return static_cast<std::uint32_t>(found->second);
  }

  std::uint64_t end(std::uint32_t file) const { return layout_.file_sizes[file]; }
  void extend(std::uint32_t file, std::uint64_t bytes) { layout_.file_sizes[file] += bytes; }

 private:
  TorchDistLayout& layout_;
  std::map<std::int64_t, std::size_t> by_rank_;
};

// How many bytes items take. Those of one shape that begin alike within the alignment are alike,
// and the chunks of a tensor mostly have one shape.
class ItemSizes {
 public:
  explicit ItemSizes(DType dtype) : dtype_(dtype) {}

  Result<std::uint64_t> size_at(const Dims& shape, std::uint64_t base) {
    if (!(shape == shape_)) {
      shape_ = shape;
      sizes_.fill(0);
    }
    std::uint64_t& size = sizes_[base % kAlignment];
    if (size == 0) size = SW_TRY(TensorItem::make(dtype_, shape, base)).size();
    return size;
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  DType dtype_;
  Dims shape_;
  std::array<std::uint64_t, kAlignment> sizes_{};  // 0: not known
};

// Where the item of each chunk lies; `chunks` have ranks in place of files and get those.
Status place_items(DType dtype, Files& files, ChunkList& chunks) {
  ItemSizes sizes(dtype);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint32_t file = files.of_rank(chunks.file(i));
    const std::uint64_t size = SW_TRY(sizes.size_at(chunks.box(i).shape, files.end(file)));
    chunks.set_location(i, file, {files.end(file), size});
    files.extend(file, size);
  }
  return {};
}

}  // namespace

Result<TorchDistLayout> layout_torch_dist(std::vector<TorchDistTensor> tensors,
                                          std::vector<TorchDistObject> objects,
                                          const std::string& folder,
                                          const DcpMetadataWriteOptions& options) {
  TorchDistLayout layout;
  Files files(layout);
  // Files in the order of ranks, not in that of the tensors.
  std::set<std::int64_t> ranks;
  for (const TorchDistObject& object : objects) ranks.insert(object.owner);
  for (const TorchDistTensor& tensor : tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) ranks.insert(tensor.chunks.owner(i));
  }
  for (const std::int64_t rank : ranks) static_cast<void>(files.of_rank(rank));

  layout.catalog.objects.reserve(objects.size());
  for (TorchDistObject& object : objects) {
    const std::uint32_t file = files.of_rank(object.owner);
    layout.catalog.objects.push_back(
        {std::move(object.name), file, {files.end(file), object.bytes}});
    files.extend(file, object.bytes);
  }
  objects = {};
  layout.catalog.tensors.reserve(tensors.size());
  for (TorchDistTensor& tensor : tensors) {
    layout.catalog.tensors.push_back(
        {std::move(tensor.desc), std::move(tensor.chunks).take(), Encoding::kTorchItem});
    StoredTensor& stored = layout.catalog.tensors.back();
    SW_TRY(place_items(stored.desc.dtype, files, stored.chunks));
  }
  // `.metadata` names files relative to its own folder.
  layout.metadata = SW_TRY(encode_dcp_metadata(layout.catalog, options));
  for (std::string& file : layout.catalog.files) file.insert(0, folder);
  return layout;
}

std::string torch_dist_marker() {
  return R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, )"
         R"("common_backend": "torch", "common_backend_version": 1})";
}

}  // namespace shardwright
