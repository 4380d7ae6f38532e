// SPDX-License-Identifier: Apache-2.0
#include "format/targets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "format/dcp/dcp_target.h"
#include "format/fsdp_dtensor/fsdp_target.h"
#include "format/hf/hf_target.h"
#include "format/legacy/legacy_target.h"
#include "format/mimo/mimo_target.h"
#include "format/safetensors/safetensors_target.h"
#include "format/torch_dist/torch_dist_target.h"

namespace shardwright {

std::span<const Target* const> all_targets() {
  static const std::array targets = {
      &hf_target(),           &torch_dist_target(), &legacy_target(),      &mimo_target(),
      &fsdp_dtensor_target(), &dcp_target(),        &safetensors_target(),
  };
  return targets;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const Target* target : all_targets()) names.push_back(target->traits().name);
  return names;
}

Result<const Target*> find_target(std::string_view name) {
  const auto named = [&](const Target* target) { return target->traits().name == name; };
  const auto found = std::ranges::find_if(all_targets(), named);
  if (found != all_targets().end()) return *found;
  const std::vector<std::string_view> names = target_names();
  const std::string_view meant = nearest_of(name, names);
  return fail(Code::kUsage, "--to '{}': no format of this name is written; give one of {}{}",
              printable(name), fmt::join(names, ", "),
              meant.empty() ? "" : translated("; did you mean {}?", meant));
}

const Target& first_target_of(TargetNames names) {
  return **std::ranges::find_if(
      all_targets(), [&](const Target* target) { return target->traits().names == names; });
}

const TargetTraits& traits_of(std::string_view name) { return (*find_target(name))->traits(); }

}  // namespace shardwright
