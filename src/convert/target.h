// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convert/mimo_source.h"
#include "format/dcp_metadata.h"
#include "format/torch_dist_layout.h"
#include "layout/component_layout.h"
#include "model/component_route.h"
#include "plan/draft.h"
#include "shardwright/convert.h"

namespace shardwright {

/// A file of the output whose bytes are known, or an artifact to carry.
struct TargetFile {
  std::string path;
  std::string bytes;
};

/// Everything that a target needs besides its tensors.
struct TargetParts {
  std::vector<DraftTensor> tensors;
  std::vector<StoredObject> copied_objects;                      ///< of the source catalog
  std::vector<std::pair<std::string, std::string>> new_objects;  ///< name and bytes
  /// Bytes of a common.pt, and what the tracker says: for Megatron targets.
  std::string common_state;
  std::string tracker;
  Arguments arguments;                  ///< of the model, where they are known
  ModuleSpec spec = ModuleSpec::kKeep;  ///< that the entries are named for, where it is known
  /// The norm behind the last layer is Transformer Engine's even among Megatron-Core's own modules:
  /// so it is wherever that is installed.
  bool final_norm_has_state = true;
  std::vector<PlannerPath> planner_paths;  ///< of a DCP target: where names were in its dict
  std::vector<TargetFile> files;
  std::vector<std::pair<std::string, StoredObject>> artifacts;  ///< path, and where it is now
  Wrappers wrappers;   ///< of a MIMO target that goes on with training
  std::string folder;  ///< of the data within the output, with a trailing slash; may be empty
};

/// What a torch_dist directory calls each tensor and opaque entry of a target, and which ranks
/// write them: parallel to TargetParts::tensors, and copied_objects before new_objects.
struct PlacedParts {
  std::vector<TorchDistTensor> tensors;
  std::vector<TorchDistObject> objects;
};

/// Every entry under its own name, on the ranks of one model.
[[nodiscard]] Result<PlacedParts> place_parts(const TargetParts& parts,
                                              const ParallelConfig& parallel);

/// Whether a family's routes and the components that the caller gave are the same, both ways.
/// Errors: kNoFamily for a family without routes, kUsage with the component.
[[nodiscard]] Status check_components(const std::string& family,
                                      std::span<const ComponentRoute> routes,
                                      const ComponentLayout& layout);

/// The same for a MIMO model: each component on its own ranks and under its route's path, the
/// states of its optimizer where their tensors are and under `mimo.<component>.`. What no route
/// leads to (`hf_extra.*`) goes with the language model. Error: kUnmatchedTarget for a component
/// that the layout lacks, kNotDivisible.
[[nodiscard]] Result<PlacedParts> place_components(const TargetParts& parts,
                                                   const ComponentLayout& layout,
                                                   std::span<const ComponentRoute> routes);

/// Lays a torch_dist target out and completes the plan's target side. `plan.source` is set.
[[nodiscard]] Status plan_torch_dist(const TargetParts& parts, const PlacedParts& placed,
                                     Plan& plan);

/// The same for a DCP directory: axis 0 shared out over `shards` ranks by torch.chunk's arithmetic,
/// as FSDP2 does it. Ranks without rows write an empty item, but not in Megatron-FSDP.
[[nodiscard]] Status plan_dcp(const TargetParts& parts, const ConvertRequest& request, Plan& plan);

/// What every target has: the known files, and the carried artifacts.
void complete(const TargetParts& parts, Plan& plan);

/// The same for a file for each rank of a legacy checkpoint. The tensors are one per layer.
[[nodiscard]] Status plan_legacy(const TargetParts& parts, const ConvertRequest& request,
                                 Plan& plan);

/// Adds safetensors files with these tensors, and their index, in a folder of the target; `folder`
/// ends with a slash or is empty. Errors: those of layout_hf.
[[nodiscard]] Status add_safetensors_folder(const std::string& folder,
                                            const std::vector<DraftTensor>& tensors,
                                            std::uint64_t max_shard_bytes, Plan& plan);

/// The same for safetensors files. `artifacts` and `files` lie beside them.
[[nodiscard]] Status plan_safetensors(const TargetParts& parts, std::uint64_t max_shard_bytes,
                                      Plan& plan);

}  // namespace shardwright
