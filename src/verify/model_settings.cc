// SPDX-License-Identifier: Apache-2.0
#include "verify/model_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/translated.h"
#include "canonical/model_facts.h"
#include "model/differing_settings.h"

namespace shardwright {
namespace {

const Mapping* family_of(const View& view, std::span<const Mapping> mappings) {
  const auto found = std::ranges::find(mappings, view.family, &Mapping::family);
  if (found != mappings.end()) return &*found;
  if (view.checkpoint.hf_config.empty()) return nullptr;
  const auto config = read_hf_config(view.checkpoint.hf_config);
  const auto named = config ? find_family(mappings, *config) : std::unexpected(config.error());
  return named ? *named : nullptr;
}

// The run's own words count before those of a config.json that is carried along.
Result<ModelSettings> settings_of(const View& view, const Mapping& mapping) {
  const Arguments run = SW_TRY(run_arguments(view.checkpoint));
  if (!run.empty()) return settings_of_run(mapping, run);
  if (view.checkpoint.hf_config.empty()) return ModelSettings();
  return settings_of_config(mapping, SW_TRY(read_hf_config(view.checkpoint.hf_config)));
}

}  // namespace

std::string differing_model_note(const View& left, const View& right, const FamilyChoice& choice) {
  // Who knows the family from the tensors alone says little; to try all would take long.
  auto mappings = load_named_mappings(choice, left.checkpoint);
  if (!mappings || mappings->empty()) mappings = load_named_mappings(choice, right.checkpoint);
  if (!mappings) return {};
  const Mapping* family = family_of(left, *mappings);
  if (family == nullptr) family = family_of(right, *mappings);
  if (family == nullptr) return {};
  const auto one = settings_of(left, *family);
  const auto other = settings_of(right, *family);
  if (!one || !other) return {};
  std::vector<std::string> told;
  for (const DifferingSetting& each : differing_models(*one, *other)) {
    told.push_back(fmt::format("{} = {} | {}", each.argument, to_string(each.of_run),
                               to_string(each.of_config)));
  }
  if (told.empty()) return {};
  return translated(
      "the models compute with other settings, which are not compared (left | right): "
      "{}",
      name_list(told));
}

}  // namespace shardwright
