// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/canonical.h"
#include "shardwright/mapping.h"
#include "shardwright/parallel.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A target tensor that knows what it is made of but not yet where it will lie.
struct DraftTensor {
  TensorDesc desc;
  TensorRecipe recipe;
  /// For vocabulary tensors: rows that mean something; the rest is padding.
  std::optional<std::int64_t> true_rows;
};

/// Name, dtype and shape of each.
[[nodiscard]] std::vector<TensorDesc> descs_of(std::span<const DraftTensor> tensors);

/// How Megatron names the tensors of a layer stack (torch_dist keys).
enum class LayerKeys : std::uint8_t {
  kAutomatic,    ///< stacked if all layers are alike, else numbered
  kNumbered,     ///< the language model's layers are numbered; other stacks as above
  kAllNumbered,  ///< as legacy files have them
};

struct DraftOptions {
  std::optional<DType> dtype;  ///< target of castable, unpinned tensors; absent: as the source
  LayerKeys layer_keys = LayerKeys::kAutomatic;
};

/// Megatron tensors out of the HF tensors of `source`. Error: kUnmatchedSource when the
/// correspondence names an HF tensor that the catalog lacks.
[[nodiscard]] Result<std::vector<DraftTensor>> draft_from_hf(const Correspondence& correspondence,
                                                             const Catalog& source,
                                                             const DraftOptions& options);

/// HF tensors out of canonical Megatron tensors, in the order of the correspondence.
[[nodiscard]] Result<std::vector<DraftTensor>> draft_to_hf(
    const Correspondence& correspondence, std::span<const CanonicalTensor> canonical,
    const DraftOptions& options);

/// Every tensor of `source` under its own name; optimizer states and expert biases keep their
/// dtype.
[[nodiscard]] std::vector<DraftTensor> draft_identity(const Catalog& source,
                                                      const DraftOptions& options);

/// The same with stacks taken apart: one tensor per layer.
[[nodiscard]] std::vector<DraftTensor> draft_layers(const Catalog& source,
                                                    const DraftOptions& options);

/// Stacks the layers where they are all alike, as Megatron-Core's torch_dist does.
[[nodiscard]] std::vector<DraftTensor> stack_layers(std::vector<DraftTensor> tensors,
                                                    LayerKeys keys);

/// What stays numbered of `stack_layers` only because a tensor is of another dtype in one layer
/// than in the others: Megatron asks for one tensor of all, which has one dtype. Error:
/// kDtypeUnsupported.
[[nodiscard]] Status check_layer_dtypes(const std::vector<DraftTensor>& tensors, LayerKeys keys);

/// Gives tensors the names that a model of the spec has, which differ for the norms before linears
/// (see names_in_spec).
void name_for_spec(ModuleSpec spec, std::vector<DraftTensor>& tensors);

/// Sorts tensors as `order` lists their names; those that it lacks follow as they were.
void order_like(std::span<const TensorDesc> order, std::vector<DraftTensor>& tensors);

/// Changes the height of a vocabulary tensor: new rows are zero, cut rows are padding.
void resize_rows(DraftTensor& tensor, std::int64_t rows);

/// Reads the rows `places[k]` of the source tensor `table` from row k of `other`, which is as wide.
void take_rows(DraftTensor& tensor, std::uint32_t table, std::uint32_t other,
               std::span<const std::int64_t> places);

}  // namespace shardwright
