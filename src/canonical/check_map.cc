// SPDX-License-Identifier: Apache-2.0
#include "canonical/check_map.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/hf_model.h"
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

// Conversions find a family by what config.json calls the model.
void check_architecture(const Mapping& mapping, const HfConfig& config, MappingReport& report) {
  const auto is_listed = [&](const std::string& name) {
    return std::ranges::find(mapping.architectures, name) != mapping.architectures.end();
  };
  if (const Status variant = check_variant(mapping, config); !variant) {
    report.problems.push_back({MappingProblem::Kind::kConfig, {}, {}, variant.error().message, {}});
  }
  if (config.architectures.empty() || std::ranges::any_of(config.architectures, is_listed)) return;
  report.problems.push_back(
      {MappingProblem::Kind::kConfig,
       {},
       {},
       translated("config.json: found architecture {}, expected {}; list it in the file's "
                  "architectures",
                  fmt::join(config.architectures, ", "),
                  fmt::join(mapping.architectures, translated(" or "))),
       {}});
}

}  // namespace

Result<MapCheck> check_map(const MapCheckRequest& request) {
  FamilyChoice files;
  files.map_files = {request.file};
  files.models_dir = request.models_dir;
  const Mappings mappings = SW_TRY(load_all_mappings(files));
  const std::string name = request.file.substr(request.file.find_last_of('/') + 1);
  const auto mapping = std::ranges::find(mappings, name, &Mapping::file);
  if (mapping == mappings.end()) {
    return fail(Code::kUsage, "{}: an abstract family fits no model; give one that extends it",
                request.file);
  }
  const Checkpoint model =
      SW_TRY(open_hf_model(request.hf_dir, FormatChoice{.flag = ""}, request.hf_dir));
  const ModelTensors tensors =
      SW_TRY(model_tensors(model.catalog, model.hf_config, model.files.get()));
  const HfConfig config = SW_TRY(read_hf_config(model.hf_config));
  MapCheck check{mapping->family, SW_TRY(report_mapping(*mapping, config, tensors.tensors))};
  check_architecture(*mapping, config, check.report);
  return check;
}

Result<std::vector<FamilyEntry>> list_families(const std::string& models_dir) {
  FamilyChoice files;
  files.models_dir = models_dir;
  std::vector<FamilyEntry> families;
  for (const Mapping& mapping : SW_TRY(load_all_mappings(files))) {
    families.push_back({mapping.family, mapping.architectures, mapping.model_types});
  }
  std::ranges::sort(families, {}, &FamilyEntry::family);
  return families;
}

}  // namespace shardwright
