// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/legacy/legacy_ranks.h"
#include "layout/tower_evidence.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// What was read of a legacy checkpoint to say what it is.
struct ReadRanks {
  std::vector<LegacyRankFile> files;  ///< pickles only
  std::vector<SettledTower> towers;
  SourceTraits traits;     ///< of their format
  std::string run_config;  ///< text of run_config.yaml; may be empty
};

/// Holds the run's arguments against the tensors that these ranks' files show, scaled up to the
/// whole model by the sizes of the diagnosis: contradictions become findings (SW0414). One file of
/// each pipeline stage shows all tensors; where one is missing, or the layout is open, that nothing
/// was held against anything becomes evidence.
void add_legacy_contradictions(ReadRanks read, Diagnosis& diagnosis);

}  // namespace shardwright
