// SPDX-License-Identifier: Apache-2.0
#include "layout/state_sharding.h"

#include <algorithm>
#include <string_view>

#include "base/translated.h"
#include "layout/bucket_name.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

bool is_of_buckets(std::string_view sharding) {
  return sharding == "dp_reshardable" || sharding == "dp_zero_gather_scatter";
}

bool is_of_tensors(std::string_view sharding) {
  return sharding == "fully_reshardable" || sharding == "fully_sharded_model_space";
}

}  // namespace

std::string contradicted_sharding(const StateSharding& told, std::span<const std::string> names) {
  const std::string& content = told.content;
  if (told.optimizers.empty() || (!is_of_buckets(content) && !is_of_tensors(content))) return {};
  const auto other =
      std::ranges::find_if(told.optimizers, [&](const auto& own) { return own != content; });
  if (other != told.optimizers.end()) {
    return translated(
        "common state: found distrib_optim_sharding_type {} in content_metadata, expected {} as "
        "the "
        "optimizer's param_state_sharding_type says; Megatron looks for its states by the former, "
        "restore common.pt",
        content, *other);
  }
  const auto in_buckets = std::ranges::find_if(
      names, [](const std::string& name) { return split_domain_name(name).has_value(); });
  const auto of_tensors = std::ranges::find_if(
      names, [](const std::string& name) { return split_state_name(name).has_value(); });
  const bool has_buckets = in_buckets != names.end();
  if (is_of_buckets(content) ? has_buckets || of_tensors == names.end() : !has_buckets) return {};
  return translated(
      "common state: content_metadata says that the optimizer's states are {}, and {} is none of "
      "these; Megatron does not find them, restore common.pt",
      content, has_buckets ? *in_buckets : *of_tensors);
}

}  // namespace shardwright
