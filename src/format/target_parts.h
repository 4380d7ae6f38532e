// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dcp/dcp_metadata.h"
#include "format/weight_names.h"
#include "layout/component_layout.h"
#include "layout/pipeline_split.h"
#include "model/component_names.h"
#include "model/component_route.h"
#include "plan/draft.h"
#include "shardwright/convert_request.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A file of the output whose bytes are known, or an artifact to carry.
struct TargetFile {
  std::string path;
  std::string bytes;
};

/// Everything that a target needs besides its tensors.
struct TargetParts {
  std::vector<DraftTensor> tensors;
  std::vector<StoredObject> copied_objects;  ///< of the source catalog
  /// Names that only Hugging Face has, of tensors that the target has no place for.
  std::vector<std::string> left_out;
  /// Name and bytes, which alike ones share.
  std::vector<std::pair<std::string, std::shared_ptr<const std::string>>> new_objects;
  /// Bytes of a common.pt, and what the tracker says: for Megatron targets.
  std::string common_state;
  std::string tracker;
  Arguments arguments;  ///< of the model, where they are known
  /// Which pipeline stage has which layers, where the run's own stages are kept.
  std::optional<StackSplits> splits;
  /// Sizes of a Megatron target, by the names of Megatron's arguments.
  std::vector<std::pair<std::string, ArgValue>> layout;
  /// Arguments of a Megatron target that its model has otherwise than the source's.
  std::vector<std::pair<std::string, ArgValue>> model_edits;
  std::string_view weight_stem = kModelStem;  ///< of a Hugging Face model's files
  ModuleSpec spec = ModuleSpec::kKeep;        ///< that the entries are named for, where it is known
  /// The norm behind the last layer is Transformer Engine's even among Megatron-Core's own modules:
  /// so it is wherever that is installed.
  bool final_norm_has_state = true;
  VersionedNames versioned_names;          ///< of a Megatron source
  bool weights_are_main = false;           ///< of Megatron-FSDP, in the type that its run chose
  std::vector<PlannerPath> planner_paths;  ///< of a DCP target: where names were in its dict
  std::vector<TargetFile> files;
  std::vector<std::pair<std::string, StoredObject>> artifacts;  ///< path, and where it is now
  Wrappers wrappers;                   ///< of a MIMO target that goes on with training
  ComponentLayout components;          ///< of a MIMO target
  std::vector<ComponentRoute> routes;  ///< of its family
  bool has_component_states = false;   ///< its optimizer is shared out by components already
  bool is_adapter = false;             ///< of an HF target: PEFT's files, not a model's
  std::string folder;  ///< of the data within the output, with a trailing slash; may be empty
};

/// Adds a file whose bytes are known.
void add_file(TargetFile file, Plan& plan);

/// What every target has: the known files, which move, and the carried artifacts.
void complete(TargetParts& parts, Plan& plan);

}  // namespace shardwright
