// SPDX-License-Identifier: Apache-2.0
#include "format/select.h"

#include <set>
#include <string>
#include <string_view>

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

using Names = std::set<std::string_view>;

Names tensor_names(const Catalog& catalog) {
  Names names;
  for (const StoredTensor& tensor : catalog.tensors) names.insert(tensor.desc.name);
  return names;
}

bool has_any_below(const Names& names, std::string_view module) {
  const std::string prefix = std::string(module) + ".";
  const auto found = names.lower_bound(prefix);
  return found != names.end() && found->starts_with(prefix);
}

// A module's extra state goes where its tensors go; those of a module without any (attention's
// core) where those around it go.
bool is_of_what_is_left_out(std::string_view object, const Names& all, const Names& kept) {
  const std::size_t end = object.find("._extra_state");
  std::string_view module = end == std::string_view::npos ? "" : object.substr(0, end);
  while (!module.empty() && !has_any_below(all, module)) {
    const std::size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? "" : module.substr(0, dot);
  }
  return !module.empty() && !has_any_below(kept, module);
}

}  // namespace

bool keeps_optimizer(const ConvertRequest& request) {
  if (request.optimizer != OptimizerPolicy::kDefault) {
    return request.optimizer == OptimizerPolicy::kKeep;
  }
  return traits_of(request.format).keeps_optimizer;
}

Status check_patterns(std::span<const Catalog* const> catalogs, const ConvertRequest& request) {
  std::vector<std::string_view> names;
  for (const Catalog* catalog : catalogs) {
    const std::vector<std::string_view> own = names_in(*catalog);
    names.insert(names.end(), own.begin(), own.end());
  }
  SW_TRY(check_globs("--include", request.include, names));
  return check_globs("--exclude", request.exclude, names);
}

Result<Catalog> select_entries(const Catalog& catalog, const ConvertRequest& request,
                               std::vector<std::string>& notes) {
  SW_TRY(check_something_stored(catalog, request.input));
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
  const Names all = filtered > 0 ? tensor_names(catalog) : Names();
  const Names kept = filtered > 0 ? tensor_names(selected) : Names();
  for (const StoredObject& object : catalog.objects) {
    if (is_optimizer_name(object.name) && !keep_optimizer) continue;
    if (matches_any(request.exclude, object.name)) continue;
    if (!is_of_what_is_left_out(object.name, all, kept)) selected.objects.push_back(object);
  }
  if (dropped > 0) notes.push_back(translated("{} optimizer tensors are dropped", dropped));
  if (filtered > 0) {
    notes.push_back(translated("{} tensors are left out by --include/--exclude", filtered));
  }
  return selected;
}

}  // namespace shardwright
