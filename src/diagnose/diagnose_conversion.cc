// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/code_group.h"
#include "format/targets.h"
#include "layout/finding_rules.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright {
namespace {

// The rows of a vocabulary are filled up for any size.
constexpr std::int64_t kUsualRows = 128;

// What config.json settles, which the caller has to give.
bool asks_for_model(Code code) {
  return code == Code::kNoFamily || code == Code::kAmbiguousFamily || code == Code::kConfigMissing;
}

ConvertRequest request_for(const DiagnosedPlace& place, std::string_view target,
                           const AxisSizes& believed) {
  ConvertRequest request;
  request.input = place.path;
  request.as = place.format;
  request.output = "OUT";
  request.format = target;
  if (!traits_of(target).has_grid) return request;
  request.parallel.tensor = believed.tensor.value_or(1);
  request.parallel.pipeline = believed.pipeline.value_or(1);
  request.parallel.virtual_pipeline = believed.virtual_pipeline.value_or(1);
  request.parallel.expert = believed.expert.value_or(1);
  request.parallel.expert_tensor = believed.expert_tensor.value_or(request.parallel.tensor);
  return request;
}

}  // namespace

void add_impossible_sizes(const DiagnosedPlace& place, const AxisSizes& believed,
                          Diagnosis& diagnosis) {
  const std::array sizes = {believed.tensor, believed.pipeline, believed.virtual_pipeline,
                            believed.expert, believed.expert_tensor};
  if (std::ranges::none_of(sizes, [](const auto& size) { return size.value_or(1) > 1; })) return;
  ConvertRequest request = request_for(place, "torch_dist", believed);
  request.optimizer = OptimizerPolicy::kDrop;
  request.make_vocab_size_divisible_by = kUsualRows;
  const auto prepared = prepare_conversion(request);
  if (prepared || prepared.error().code != Code::kNotDivisible) return;
  add_finding(diagnosis, "L49", {{"error", prepared.error().message}});
  diagnosis.next = "shardwright inspect " + place.shown;
}

void add_refused_conversion(const DiagnosedPlace& place, std::string_view target,
                            const AxisSizes& believed, Diagnosis& diagnosis) {
  ConvertRequest request = request_for(place, target, believed);
  auto prepared = prepare_conversion(request);
  std::string rows;
  if (!prepared && prepared.error().code == Code::kVocabularyNotDivisible) {
    request.make_vocab_size_divisible_by = kUsualRows;
    rows = fmt::format(" --make-vocab-size-divisible-by {}", kUsualRows);
    prepared = prepare_conversion(request);
  }
  if (prepared) {
    diagnosis.next += rows;
    return;
  }
  const Error& error = prepared.error();
  if (!place.has_config && asks_for_model(error.code)) {
    diagnosis.next += kModelFlag;
    return;
  }
  const CodeGroup group = group_of(error.code);
  if (group == CodeGroup::kSurroundings) return;
  const bool is_damage = group == CodeGroup::kContents;
  add_finding(diagnosis, "L51", {{"error", error.text()}},
              is_damage ? Severity::kError : Severity::kWarning);
  diagnosis.next = is_damage ? "shardwright verify " + place.shown
                             : "shardwright explain " + code_name(error.code);
}

}  // namespace shardwright
