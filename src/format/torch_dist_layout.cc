// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dist_layout.h"

#include <fmt/core.h>

#include <map>

#include "codec/torch_item.h"
#include "format/dcp_metadata.h"

namespace shardwright {
namespace {

// Hands out consecutive space in one file per rank.
class Files {
 public:
  Files(const std::string& folder, TorchDistLayout& layout) : folder_(folder), layout_(layout) {}

  std::uint32_t of_rank(std::int64_t rank) {
    const auto [found, is_new] = by_rank_.try_emplace(rank, layout_.catalog.files.size());
    if (is_new) {
      layout_.catalog.files.push_back(fmt::format("{}__{}_0.distcp", folder_, rank));
      layout_.file_sizes.push_back(0);
    }
    return static_cast<std::uint32_t>(found->second);
  }

  std::uint64_t end(std::uint32_t file) const { return layout_.file_sizes[file]; }
  void extend(std::uint32_t file, std::uint64_t bytes) { layout_.file_sizes[file] += bytes; }

 private:
  const std::string& folder_;
  TorchDistLayout& layout_;
  std::map<std::int64_t, std::size_t> by_rank_;
};

// `.metadata` names files relative to its own folder.
Catalog relative_to_folder(const Catalog& catalog, std::size_t folder_bytes) {
  Catalog relative = catalog;
  for (std::string& file : relative.files) file.erase(0, folder_bytes);
  return relative;
}

}  // namespace

Result<TorchDistLayout> layout_torch_dist(const std::vector<TorchDistTensor>& tensors,
                                          const std::vector<TorchDistObject>& objects,
                                          const std::string& folder,
                                          const DcpMetadataWriteOptions& options) {
  TorchDistLayout layout;
  Files files(folder, layout);
  // Files in the order of ranks, whoever asks first.
  std::map<std::int64_t, bool> ranks;
  for (const TorchDistObject& object : objects) ranks[object.owner] = true;
  for (const TorchDistTensor& tensor : tensors) {
    for (const OwnedChunk& chunk : tensor.chunks) ranks[chunk.owner] = true;
  }
  for (const auto& [rank, used] : ranks) static_cast<void>(files.of_rank(rank));

  for (const TorchDistObject& object : objects) {
    const std::uint32_t file = files.of_rank(object.owner);
    layout.catalog.objects.push_back({object.name, file, {files.end(file), object.bytes}});
    files.extend(file, object.bytes);
  }
  for (const TorchDistTensor& tensor : tensors) {
    StoredTensor stored{tensor.desc, ChunkList(tensor.desc.shape.size()), Encoding::kTorchItem};
    stored.chunks.reserve(tensor.chunks.size());
    for (const OwnedChunk& chunk : tensor.chunks) {
      const std::uint32_t file = files.of_rank(chunk.owner);
      const TensorItem item =
          SW_TRY(TensorItem::make(tensor.desc.dtype, chunk.box.shape, files.end(file)));
      stored.chunks.push_back({chunk.box, file, {files.end(file), item.size()}, {}});
      files.extend(file, item.size());
    }
    layout.catalog.tensors.push_back(std::move(stored));
  }
  layout.metadata =
      SW_TRY(encode_dcp_metadata(relative_to_folder(layout.catalog, folder.size()), options));
  return layout;
}

std::string torch_dist_marker() {
  return R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, )"
         R"("common_backend": "torch", "common_backend_version": 1})";
}

}  // namespace shardwright
