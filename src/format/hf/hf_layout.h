// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/weight_names.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Where everything of a folder of safetensors files lies, decided before a byte is written.
struct HfLayout {
  Catalog catalog;  ///< tensors in the given order, Encoding::kRaw, one chunk each
  std::vector<std::uint64_t> file_sizes;
  std::vector<Literal> literals;  ///< the files' headers
  std::string index;              ///< of the files; empty where one holds everything
};

/// Fills files of at most `max_shard_bytes` of tensors in the given order (a larger tensor gets its
/// own file) and names them as Hugging Face does, `stem` first. Error: kSafetensorsDtype for a
/// dtype that safetensors lacks, kDuplicateName.
[[nodiscard]] Result<HfLayout> layout_hf(const std::vector<TensorDesc>& tensors,
                                         std::uint64_t max_shard_bytes,
                                         std::string_view stem = kModelStem);

}  // namespace shardwright
