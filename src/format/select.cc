// SPDX-License-Identifier: Apache-2.0
#include "format/select.h"

#include "base/fail.h"
#include "base/glob.h"
#include "format/nothing_stored.h"
#include "format/targets.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  for (const std::string& pattern : patterns) {
    if (matches_glob(pattern, name)) return true;
  }
  return false;
}

std::vector<std::string_view> names_in(const Catalog& catalog) {
  std::vector<std::string_view> names;
  for (const StoredTensor& tensor : catalog.tensors) names.push_back(tensor.desc.name);
  for (const StoredObject& object : catalog.objects) names.push_back(object.name);
  return names;
}

}  // namespace

bool keeps_optimizer(const ConvertRequest& request) {
  if (request.optimizer != OptimizerPolicy::kDefault) {
    return request.optimizer == OptimizerPolicy::kKeep;
  }
  return traits_of(request.format).keeps_optimizer;
}

Result<Catalog> select_entries(const Catalog& catalog, const ConvertRequest& request,
                               std::vector<std::string>& notes) {
  SW_TRY(check_something_stored(catalog, request.input));
  const std::vector<std::string_view> names = names_in(catalog);
  SW_TRY(check_globs("--include", request.include, names));
  SW_TRY(check_globs("--exclude", request.exclude, names));
  const bool keep_optimizer = keeps_optimizer(request);
  if (keep_optimizer && !traits_of(request.format).holds_optimizer) {
    return fail(Code::kUsage, "--optimizer keep: a Hugging Face checkpoint has no optimizer state");
  }
  const auto is_wanted = [&](std::string_view name) {
    if (!request.include.empty() && !matches_any(request.include, name)) return false;
    return !matches_any(request.exclude, name);
  };
  Catalog selected;
  selected.files = catalog.files;
  selected.kind_stacks = catalog.kind_stacks;
  selected.tensors.reserve(catalog.tensors.size());
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
  if (dropped > 0) notes.push_back(translated("{} optimizer tensors are dropped", dropped));
  if (filtered > 0) {
    notes.push_back(translated("{} tensors are left out by --include/--exclude", filtered));
  }
  return selected;
}

}  // namespace shardwright
