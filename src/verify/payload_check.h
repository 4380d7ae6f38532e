// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "shardwright/verify.h"

namespace shardwright {

/// An archive of torch.save to be checked: an item of a .distcp file, or a whole file. There may be
/// a million.
struct PayloadItem {
  ByteRange range;
  std::string_view name;    ///< of the tensor or entry, in the catalog; empty for a file of many
  std::uint32_t file = 0;   ///< index into Catalog::files
  std::uint32_t chunk = 0;  ///< of the tensor
};

/// The archives that a checkpoint stores its payloads in, each once; tensors in safetensors files
/// have none. To be called before locate_items, which forgets them. The catalog's tensors and
/// objects must stay where they are as long as the items are used. Names that can't be read are
/// told to `defects`.
[[nodiscard]] Result<std::vector<PayloadItem>> list_payloads(Checkpoint& checkpoint,
                                                             Defects& defects);

/// Reads every byte of the archives, several at a time: zip headers against directories, CRC-32s
/// against payloads. What is wrong goes into the report's findings, what was right into its counts.
[[nodiscard]] Status check_payloads(const Checkpoint& checkpoint,
                                    const std::vector<PayloadItem>& items,
                                    const ProofOptions& options, VerifyReport& report);

/// The items whose chunks were not lost.
[[nodiscard]] std::vector<PayloadItem> without_lost(std::vector<PayloadItem> items,
                                                    const Defects& defects);

}  // namespace shardwright
