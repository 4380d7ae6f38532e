// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "convert/model_facts.h"
#include "model/config.h"
#include "model/mapping_file.h"
#include "shardwright/merge.h"

namespace shardwright {

/// A part's checkpoint, opened.
struct OpenedPart {
  const ModelPart* part = nullptr;
  std::string path;
  Checkpoint checkpoint;
};

/// The model that parts are to become.
struct WholeModel {
  const Mapping* mapping = nullptr;
  std::string config_text;
  HfConfig config;
  ModelSizes sizes;
  std::vector<TensorDesc> keys;  ///< its tensors in their order, where something tells; or none
};

/// A tensor of a part under the name that the whole model has for it.
struct PlacedTensor {
  TensorDesc desc;
  std::size_t part = 0;   ///< which of the opened ones
  std::size_t index = 0;  ///< in that part's catalog
};

/// kNoFamily for a family whose models are not put together of parts.
[[nodiscard]] std::unexpected<Error> no_parts(const Mapping& mapping);

/// The parts that a request names. Errors: kUsage, those of opening a checkpoint, and kUsage for
/// one that is no Hugging Face checkpoint.
[[nodiscard]] Result<std::vector<OpenedPart>> open_parts(const MergeRequest& request,
                                                         const Mapping& mapping);

/// The parts' tensors, named so that as few as possible are missing, doubled or unknown: files of
/// one family may have older names and newer ones. Error: kLimit.
[[nodiscard]] Result<std::vector<PlacedTensor>> name_tensors(const std::vector<OpenedPart>& parts,
                                                             const WholeModel& whole);

/// Tensors of a model's parts in numbers.
[[nodiscard]] PartReport part_report(std::string name, std::string path,
                                     std::span<const StoredTensor* const> tensors);

}  // namespace shardwright
