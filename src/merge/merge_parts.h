// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "canonical/model_facts.h"
#include "format/targets.h"
#include "model/config.h"
#include "model/mapping_file.h"
#include "model/mapping_report.h"
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

/// The parts' tensors under the whole model's names.
struct NamedTensors {
  std::vector<PlacedTensor> tensors;
  /// How the first ones of each name fit the family; not where `WholeModel::keys` told the names.
  std::optional<MappingReport> report;
};

/// The part whose config.json may say that its head is its embedding.
inline constexpr std::string_view kLanguagePart = "language";

/// What a merge or a split asks of the conversion that it becomes.
template <class Request>
ConvertRequest hf_request(const Request& asked) {
  ConvertRequest request;
  request.output = asked.output;
  request.format = first_target_of(TargetNames::kHf).traits().name;
  request.overwrite = asked.overwrite;
  request.threads = asked.threads;
  request.max_shard_bytes = asked.max_shard_bytes;
  request.family = asked.family;
  request.map_files = asked.map_files;
  request.models_dir = asked.models_dir;
  return request;
}

/// Whether a config says that the head is the embedding, by its family's rules where one is known.
[[nodiscard]] bool says_tied(const HfConfig& config, const Mapping* family);

/// The same of a part's own config, of whatever family. Errors: those of load_mappings.
[[nodiscard]] Result<bool> says_tied(const HfConfig& config, const FamilyChoice& choice);

/// How tensors fit the family. Errors: those of join_scales and of report_mapping.
[[nodiscard]] Result<MappingReport> report_fit(const WholeModel& whole,
                                               std::span<const TensorDesc> stored);

/// kNoFamily for a family whose models are not put together of parts.
[[nodiscard]] std::unexpected<Error> no_parts(const Mapping& mapping);

/// The parts that a request names. Errors: kUsage, those of opening a checkpoint, and kUsage for
/// one that is no Hugging Face checkpoint or a whole model.
[[nodiscard]] Result<std::vector<OpenedPart>> open_parts(const MergeRequest& request,
                                                         const Mapping& mapping);

/// The parts' tensors, named so that as few as possible are missing, doubled or unknown: files of
/// one family may have older names and newer ones. Error: kLimit.
[[nodiscard]] Result<NamedTensors> name_tensors(const std::vector<OpenedPart>& parts,
                                                const WholeModel& whole);

/// Tensors of a model's parts in numbers.
[[nodiscard]] PartReport part_report(std::string name, std::string path,
                                     std::span<const StoredTensor* const> tensors);

}  // namespace shardwright
