// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_sizes.h"

#include <algorithm>
#include <array>

#include "base/shell_path.h"
#include "layout/finding_rules.h"
#include "shardwright/convert.h"

namespace shardwright {
namespace {

// The rows of a vocabulary are filled up for any size.
constexpr std::int64_t kUsualRows = 128;

}  // namespace

void add_impossible_sizes(const std::string& path, const std::string& as, const AxisSizes& believed,
                          Diagnosis& diagnosis) {
  const std::array sizes = {believed.tensor, believed.pipeline, believed.virtual_pipeline,
                            believed.expert, believed.expert_tensor};
  if (std::ranges::none_of(sizes, [](const auto& size) { return size.value_or(1) > 1; })) return;
  ConvertRequest request;
  request.input = path;
  request.as = as;
  request.output = "OUT";
  request.format = "torch_dist";
  request.optimizer = OptimizerPolicy::kDrop;
  request.make_vocab_size_divisible_by = kUsualRows;
  request.parallel.tensor = believed.tensor.value_or(1);
  request.parallel.pipeline = believed.pipeline.value_or(1);
  request.parallel.virtual_pipeline = believed.virtual_pipeline.value_or(1);
  request.parallel.expert = believed.expert.value_or(1);
  request.parallel.expert_tensor = believed.expert_tensor.value_or(request.parallel.tensor);
  const auto prepared = prepare_conversion(request);
  if (prepared || prepared.error().code != Code::kNotDivisible) return;
  add_finding(diagnosis, "L49", {{"error", prepared.error().message}});
  diagnosis.next = "shardwright inspect " + shell_path(path);
}

}  // namespace shardwright
