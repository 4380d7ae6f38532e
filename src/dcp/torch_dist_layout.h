// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dcp/dcp_metadata.h"
#include "layout/owned_chunks.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A tensor to be written and its pieces by rank.
struct TorchDistTensor {
  TensorDesc desc;
  OwnedChunks chunks;
};

/// An opaque entry to be written.
struct TorchDistObject {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t owner = 0;
};

/// Where everything of a torch_dist directory lies, decided before a byte is written.
struct TorchDistLayout {
  Catalog catalog;  ///< tensors in the given order, Encoding::kTorchItem; objects likewise
  std::vector<std::uint64_t> file_sizes;
  std::string metadata;  ///< bytes of `.metadata`
};

/// Lays out `__{rank}_0.distcp` files under `folder` (with a trailing slash, or empty): objects
/// first, then tensors, as Megatron-Core's writer does, without gaps, payloads on 64-byte
/// boundaries. Ranks without anything get no file.
[[nodiscard]] Result<TorchDistLayout> layout_torch_dist(
    std::vector<TorchDistTensor> tensors, std::vector<TorchDistObject> objects,
    const std::string& folder, const DcpMetadataWriteOptions& options = {});

/// The content of metadata.json that every Megatron-Core version accepts; further fields would be
/// a TypeError in versions up to 0.18.
[[nodiscard]] std::string torch_dist_marker();

}  // namespace shardwright
