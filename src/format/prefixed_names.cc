// SPDX-License-Identifier: Apache-2.0
#include "format/prefixed_names.h"

#include <algorithm>

#include "layout/state_name.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// Where a tensor's own name begins: behind what says which state of it this is.
std::size_t begin_of_tensor(std::string_view name) {
  if (!is_optimizer_name(name)) return 0;
  const auto state = split_state_name(name);
  return state ? name.size() - state->tensor.size() : name.size();
}

void rename_without(std::string_view prefix, std::string& name) {
  const std::size_t at = begin_of_tensor(name);
  if (std::string_view(name).substr(at).starts_with(prefix)) name.erase(at, prefix.size());
}

}  // namespace

bool has_prefixed_names(const Catalog& catalog, std::string_view prefix) {
  bool has_megatrons = false;
  for (const StoredTensor& tensor : catalog.tensors) {
    std::string_view name = tensor.desc.name;
    if (is_optimizer_name(name)) continue;
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    has_megatrons |= name.starts_with("decoder.") || name.starts_with("embedding.");
  }
  return has_megatrons;
}

void take_prefix_off(std::string_view prefix, Catalog& catalog) {
  for (StoredTensor& tensor : catalog.tensors) rename_without(prefix, tensor.desc.name);
  for (StoredObject& object : catalog.objects) rename_without(prefix, object.name);
}

void put_prefix_on(std::string_view prefix, std::string& name) {
  name.insert(begin_of_tensor(name), prefix);
}

}  // namespace shardwright
