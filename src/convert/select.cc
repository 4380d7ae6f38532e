// SPDX-License-Identifier: Apache-2.0
#include "convert/select.h"

#include <fnmatch.h>

#include "base/fail.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  for (const std::string& pattern : patterns) {
    if (matches_glob(pattern, name)) return true;
  }
  return false;
}

Status check_patterns(const Catalog& catalog, const std::vector<std::string>& patterns,
                      std::string_view flag) {
  for (const std::string& pattern : patterns) {
    bool matched = false;
    for (const StoredTensor& tensor : catalog.tensors) {
      matched = matched || matches_glob(pattern, tensor.desc.name);
    }
    for (const StoredObject& object : catalog.objects) {
      matched = matched || matches_glob(pattern, object.name);
    }
    if (!matched) {
      return fail(Code::kUsage, "{} '{}': matches no tensor of the source", flag, pattern);
    }
  }
  return {};
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view name) {
  return fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), 0) == 0;
}

bool keeps_optimizer(const ConvertRequest& request) {
  if (request.optimizer != OptimizerPolicy::kDefault) {
    return request.optimizer == OptimizerPolicy::kKeep;
  }
  return request.format == TargetFormat::kTorchDist || request.format == TargetFormat::kDcp ||
         request.format == TargetFormat::kFsdpDtensor || request.format == TargetFormat::kLegacy;
}

Result<Catalog> select_entries(const Catalog& catalog, const ConvertRequest& request,
                               std::vector<std::string>& notes) {
  SW_TRY(check_patterns(catalog, request.include, "--include"));
  SW_TRY(check_patterns(catalog, request.exclude, "--exclude"));
  const bool keep_optimizer = keeps_optimizer(request);
  if (keep_optimizer && request.format == TargetFormat::kHf) {
    return fail(Code::kUsage, "--optimizer keep: a Hugging Face checkpoint has no optimizer state");
  }
  const auto is_wanted = [&](std::string_view name) {
    if (!request.include.empty() && !matches_any(request.include, name)) return false;
    return !matches_any(request.exclude, name);
  };
  Catalog selected;
  selected.files = catalog.files;
  std::size_t dropped = 0;
  std::size_t filtered = 0;
  for (const StoredTensor& tensor : catalog.tensors) {
    const bool is_optimizer = is_optimizer_name(tensor.desc.name);
    if (is_optimizer && !keep_optimizer) {
      ++dropped;
    } else if (!is_wanted(tensor.desc.name)) {
      ++filtered;
    } else {
      selected.tensors.push_back(tensor);
    }
  }
  for (const StoredObject& object : catalog.objects) {
    if (is_optimizer_name(object.name) && !keep_optimizer) continue;
    if (!matches_any(request.exclude, object.name)) selected.objects.push_back(object);
  }
  if (dropped > 0) notes.push_back(fmt::format("{} optimizer tensors are dropped", dropped));
  if (filtered > 0) {
    notes.push_back(fmt::format("{} tensors are left out by --include/--exclude", filtered));
  }
  return selected;
}

}  // namespace shardwright
