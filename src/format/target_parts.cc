// SPDX-License-Identifier: Apache-2.0
#include "format/target_parts.h"

namespace shardwright {

void add_file(TargetFile file, Plan& plan) {
  const std::uint32_t index = static_cast<std::uint32_t>(plan.target.files.size());
  plan.target.files.push_back(std::move(file.path));
  plan.file_sizes.push_back(file.bytes.size());
  if (!file.bytes.empty()) plan.literals.push_back({index, 0, std::move(file.bytes)});
}

void complete(TargetParts& parts, Plan& plan) {
  for (TargetFile& file : parts.files) add_file(std::move(file), plan);
  parts.files.clear();
  for (const auto& [path, source] : parts.artifacts) {
    const std::uint32_t index = static_cast<std::uint32_t>(plan.target.files.size());
    plan.target.files.push_back(path);
    plan.file_sizes.push_back(source.range.length);
    const std::uint32_t from = static_cast<std::uint32_t>(plan.source.objects.size());
    plan.source.objects.push_back(source);
    plan.target.objects.push_back({path, index, {0, source.range.length}});
    plan.objects.push_back({true, from, {}});
  }
}

}  // namespace shardwright
