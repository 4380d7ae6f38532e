// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A canonical Megatron tensor (one layer's own) inside a stored tensor, which may stack the layers
/// along its first axis.
struct CanonicalTensor {
  TensorDesc desc;
  std::uint32_t stored = 0;  ///< index into Catalog::tensors
  std::int64_t layer = -1;   ///< index on the stacking axis, -1 where the stored tensor is it
};

/// Whether the tensors are named as Megatron-Core names a decoder's.
[[nodiscard]] bool has_megatron_names(const Catalog& catalog);

/// Whether some of them stand where Megatron's own models have them: outermost, or in the part of
/// one that reads, sees or hears. A wrapper's word before them is none that Megatron asks for.
[[nodiscard]] bool has_megatron_roots(const Catalog& catalog);

/// Appends what the stored tensor `index` of a catalog is made of, under `name`: one tensor per
/// layer where its first axis counts them, else the tensor itself.
void append_canonical(const Catalog& catalog, std::uint32_t index, std::string_view name,
                      std::vector<CanonicalTensor>& tensors);

/// The canonical tensors of a torch_dist catalog, in its order. Optimizer states are left out.
[[nodiscard]] std::vector<CanonicalTensor> canonical_tensors(const Catalog& catalog);

/// Name, dtype and shape of each.
[[nodiscard]] std::vector<TensorDesc> descs_of(std::span<const CanonicalTensor> tensors);

/// Those of the canonical tensors of a catalog. Error: kLimit, as check_piece_count().
[[nodiscard]] Result<std::vector<TensorDesc>> canonical_descs(const Catalog& catalog);

/// The whole of a canonical tensor as a view of the tensor it is stored in.
[[nodiscard]] TensorView view_of_canonical(const CanonicalTensor& tensor);

/// Whether the entry belongs to an optimizer, by its name: one of the prefixes that Megatron-Core
/// uses, or what trainers call theirs in torch's state dict (`app.optim.state.W.exp_avg`,
/// `optimizers.0.param_groups.…`, `state.W.exp_avg` alone).
[[nodiscard]] bool is_optimizer_name(std::string_view name);

}  // namespace shardwright
