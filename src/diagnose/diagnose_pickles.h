// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "format/pickle_files.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// Says what pickles would do in a loader that obeys them (L43, L44) and which are no whole pickles
/// (L35).
void add_pickle_findings(const std::vector<PickleReport>& reports, Diagnosis& diagnosis);

/// The same of a folder's files: a few hundred, and how many were left out.
void add_folder_pickles(const Directory& directory, const std::string& folder,
                        Diagnosis& diagnosis);

/// The same of an opened checkpoint's files, entries and `.metadata`.
void add_checkpoint_pickles(const Checkpoint& checkpoint, Diagnosis& diagnosis);

}  // namespace shardwright
