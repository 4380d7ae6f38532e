// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/mapping_report.h"

namespace shardwright {

/// A mapping file that somebody writes, and a model to try it on.
struct MapCheckRequest {
  std::string file;
  std::string hf_dir;      ///< a Hugging Face folder, of which config.json and headers are read
  std::string models_dir;  ///< folder with mapping files; empty: the built-in ones
};

struct MapCheck {
  std::string family;
  MappingReport report;
};

/// Errors: as parse_mappings, open_checkpoint and join_scales; kUsage for a file that is only there
/// to be extended and for a folder that is no Hugging Face model with its config.json.
[[nodiscard]] Result<MapCheck> check_map(const MapCheckRequest& request);

/// One family, for lists.
struct FamilyEntry {
  std::string family;
  std::vector<std::string> architectures;
  std::vector<std::string> model_types;
};

/// The families that conversions know, by name.
[[nodiscard]] Result<std::vector<FamilyEntry>> list_families(const std::string& models_dir);

}  // namespace shardwright
