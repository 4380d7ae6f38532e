// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_arguments.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/fail.h"
#include "canonical/contradictions.h"
#include "canonical/model_facts.h"
#include "diagnose/diagnose_contents.h"
#include "format/attention_kinds.h"
#include "layout/finding_rules.h"

namespace shardwright {
namespace {

// What the diagnosis says of the ranks, in the words of the reader.
Result<LegacyAxes> axes_of(std::span<const LegacyRankFile> files, const Diagnosis& diagnosis) {
  const AxisSizes& sizes = diagnosis.sizes;
  const bool is_open = std::ranges::any_of(
      diagnosis.coordinates, [](const std::string& name) { return name.contains('|'); });
  if (is_open || !sizes.tensor) {
    return fail(Code::kLegacyLayout, "what the numbers of the folders mean is open");
  }
  const auto place_of = [&](std::string_view name) {
    return std::ranges::find(diagnosis.coordinates, name) - diagnosis.coordinates.begin();
  };
  const auto number = [&](const LegacyRankFile& file, std::string_view name) {
    const auto place = static_cast<std::size_t>(place_of(name));
    return place < file.numbers.size() ? file.numbers[place] : 0;
  };
  LegacyAxes axes;
  axes.config.tensor = *sizes.tensor;
  axes.config.pipeline = sizes.pipeline.value_or(1);
  axes.config.expert = sizes.expert.value_or(1);
  axes.config.expert_tensor = sizes.expert_tensor.value_or(*sizes.tensor);
  axes.config.virtual_pipeline = std::ssize(files.front().contents.models);
  if (axes.config.expert_tensor < 1 || axes.config.tensor % axes.config.expert_tensor != 0) {
    return fail(Code::kLegacyLayout, "found ETP {} with TP {}, expected a divisor of it",
                axes.config.expert_tensor, axes.config.tensor);
  }
  std::set<std::int64_t> stages;
  for (const LegacyRankFile& file : files) {
    const std::int64_t tensor = number(file, "tp");
    axes.ranks.push_back(
        {tensor, number(file, "pp"), number(file, "ep"), tensor % axes.config.expert_tensor});
    stages.insert(axes.ranks.back().pipeline);
    if (std::ssize(file.contents.models) == axes.config.virtual_pipeline) continue;
    return fail(Code::kLegacyLayout, "found files of {} and of {} virtual stages",
                axes.config.virtual_pipeline, file.contents.models.size());
  }
  if (std::ssize(stages) != axes.config.pipeline) {
    return fail(Code::kLegacyLayout,
                "files of {} pipeline stages were read, expected {}; verify reads all of them",
                stages.size(), axes.config.pipeline);
  }
  return axes;
}

Result<std::vector<TensorDesc>> canonical_of(ReadRanks read, const Diagnosis& diagnosis) {
  LegacyAxes axes = SW_TRY(axes_of(read.files, diagnosis));
  const LegacyRanks ranks =
      LegacyRanks::of(std::move(read.files), std::move(axes), std::move(read.towers));
  std::vector<TensorDesc> canonical;
  std::set<std::string> known;
  for (std::size_t i = 0; i < ranks.files().size(); ++i) {
    const std::vector<LegacyModel>& models = ranks.files()[i].contents.models;
    for (std::size_t v = 0; v < models.size(); ++v) {
      const LegacyStage stage = SW_TRY(ranks.stage_of(i, v));
      for (const auto& parts : SW_TRY(legacy_parts(descs_of(models[v]), stage))) {
        for (const LegacyPart& part : parts) {
          if (known.insert(part.canonical.name).second) canonical.push_back(part.canonical);
        }
      }
    }
  }
  return canonical;
}

}  // namespace

void add_legacy_contradictions(ReadRanks read, Diagnosis& diagnosis) {
  if (read.files.empty()) return;
  Checkpoint run;
  run.location.traits = read.traits;
  run.arguments = read.files.front().contents.arguments;
  run.run_config = read.run_config;
  const auto check = [&]() -> Result<ArgumentCheck> {
    const Arguments arguments = SW_TRY(run_arguments(run));
    if (arguments.empty()) return ArgumentCheck();
    std::vector<TensorDesc> canonical = SW_TRY(canonical_of(std::move(read), diagnosis));
    tell_attention_kinds(arguments, canonical);
    return contradictions_of(run, canonical);
  }();
  add_contradictions(check, diagnosis);
}

}  // namespace shardwright
