// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "canonical/tied_head.h"
#include "format/peft/adapter.h"
#include "model/mapping_file.h"

namespace shardwright {

/// A tensor of the base model to which a module of an adapter adds something; the adapter's tensors
/// are indexes into its catalog.
struct ModelUpdate {
  std::string tensor;
  std::uint32_t out = 0;
  std::optional<std::uint32_t> in;         ///< absent for a bias
  std::optional<std::uint32_t> magnitude;  ///< of DoRA
  int out_axis = 0;
  int in_axis = 1;
  float scale = 1.0F;
  bool is_of_experts = false;  ///< matrices of all experts in one tensor, which axis 0 counts
};

/// Rows of a tensor of the base model that become the adapter's.
struct RowUpdate {
  std::string tensor;
  std::uint32_t rows = 0;            ///< index into the adapter's catalog
  std::vector<std::int64_t> places;  ///< in `tensor`, of each row
};

/// What an adapter does to a model.
struct AdapterUpdates {
  std::vector<ModelUpdate> updates;  ///< after `saved`, where both speak of a tensor
  std::vector<SavedTensor> saved;    ///< tensors that become the adapter's
  std::vector<RowUpdate> rows;       ///< put into the base's tensor, or what `saved` made of it
  /// Of a classifier's head that the base lacks: each is the weight or the bias of one linear,
  /// which comes in its output layer's place.
  std::vector<SavedTensor> head;
  /// Set where head and embedding are no longer the same.
  std::optional<TiedHead> untied;
};

/// Finds the model's tensors for all that an adapter has, also by what its family's parts are
/// called besides: adapters have the names of modules, files often older ones (module_name).
/// Without a family (null) names are what they are. Errors: kUnmatchedSource for a module or tensor
/// that the model lacks; kShapeMismatch naming both tensors; kUnsupportedFormat for square experts
/// of which nothing tells the axes.
[[nodiscard]] Result<AdapterUpdates> match_adapter(const PeftAdapter& adapter,
                                                   std::span<const TensorDesc> model,
                                                   const Mapping* family,
                                                   const std::optional<TiedHead>& tied);

}  // namespace shardwright
