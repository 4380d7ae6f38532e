// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "format/legacy/legacy_file.h"
#include "layout/legacy_evidence.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The files of a rank's folder, for evidence.
[[nodiscard]] RankFolder rank_folder(std::string name, std::span<const DirectoryEntry> entries);

/// What a rank's file holds, for evidence.
[[nodiscard]] RankSample rank_sample(std::string folder, const LegacyFile& contents);

}  // namespace shardwright
