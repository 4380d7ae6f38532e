// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"
#include "shardwright/plan.h"

namespace shardwright {

/// One line of what a conversion does to names: source and target tensors of one rule.
struct RenamedTensor {
  std::vector<std::string> source;
  std::string target;
};

/// Chunks in a place that another chunk claims too, and the bytes that comparing them reads.
struct ReplicaCost {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
};

/// A component of a MIMO target with everything solved.
struct ComponentRanks {
  ComponentSpec spec;  ///< nothing of it absent
  std::string path;    ///< what its tensors' names begin with

  [[nodiscard]] std::int64_t ranks() const {
    return *spec.tensor * *spec.context * *spec.data * *spec.pipeline;
  }
};

/// A checkpoint that is averaged with the input.
struct AveragedSource {
  Checkpoint checkpoint;  ///< its files are the input's too, behind that one's own
  Catalog wanted;         ///< of it, by the numbers that its own files have
};

/// A conversion that is planned and proven, with nothing written yet.
struct PreparedConversion {
  ConvertRequest request;
  Checkpoint source;
  std::vector<AveragedSource> averaged;
  std::vector<std::string> more_sources;  ///< folders that are read beside request.input
  Plan plan;
  std::string family;                      ///< empty where no mapping was needed
  std::vector<ComponentRanks> components;  ///< of a MIMO target, as they were given
  std::vector<RenamedTensor> renames;
  std::vector<std::string> notes;  ///< things the user should know: dropped, guessed, kept
  /// Master weights are compared with the weights before anything is written: which state belongs
  /// to which parameter was derived.
  bool checks_master_weights = false;
  std::uint64_t master_weight_bytes = 0;  ///< read for that, of weights and master weights
  ReplicaCost replicas;  ///< compared when it runs, see ConvertRequest::check_replicas
  std::uint64_t peak_memory_bytes = 0;
};

/// detect → catalog → plan → check. Reads headers, and bytes only of tensors that may be a copy of
/// another (tied embeddings), a constant, or a norm that loses bits where Megatron shifts it, and
/// of the first elements of some master weights; notes say what came of it. Compressed items are
/// decoded into a temporary file. Keeps nothing between calls: several threads may call it at once,
/// each with a request of its own.
[[nodiscard]] Result<PreparedConversion> prepare_conversion(const ConvertRequest& request);

/// What is in the way of a conversion's output and goes when it is published.
struct ReplacedOutput {
  bool keeps_others = false;         ///< the output is a run's root: what is not named here stays
  std::vector<std::string> entries;  ///< of the output's folder; folders end with a slash
};

/// What a conversion with `overwrite` would replace; nothing where the output is not there. Errors:
/// kTargetExists, naming what would be lost that is not known to be of one checkpoint.
[[nodiscard]] Result<ReplacedOutput> replaced_output(const PreparedConversion& conversion);

}  // namespace shardwright
