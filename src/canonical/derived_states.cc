// SPDX-License-Identifier: Apache-2.0
#include "canonical/derived_states.h"

#include <algorithm>

#include "format/bucket_source.h"
#include "format/flat_states.h"
#include "format/formats.h"
#include "layout/fsdp_name.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

bool is_state(const StoredTensor& tensor) {
  const std::string& name = tensor.desc.name;
  if (const auto fsdp = split_fsdp_name(name)) return fsdp->role != FsdpName::Role::kModel;
  return is_optimizer_name(name);
}

}  // namespace

bool has_states(const Checkpoint& checkpoint) {
  return checkpoint.has_unread_optimizer || has_buckets(checkpoint.catalog) ||
         std::ranges::any_of(checkpoint.catalog.tensors, is_state);
}

bool has_unnamed_states(const Checkpoint& checkpoint, const Catalog& catalog) {
  return !checkpoint.location.traits.has_module_pieces && has_flat_states(catalog);
}

Result<bool> read_states(Checkpoint& checkpoint, Defects& defects) {
  if (!checkpoint.has_unread_optimizer) return false;
  SW_TRY(form_of(checkpoint).read_states(checkpoint, defects));
  return true;
}

Result<bool> name_states(Checkpoint& checkpoint, Catalog& wanted) {
  if (!has_unnamed_states(checkpoint, wanted)) return false;
  SW_TRY(undo_flat_states(checkpoint, wanted));
  return true;
}

}  // namespace shardwright
