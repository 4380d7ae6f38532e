// SPDX-License-Identifier: Apache-2.0
#include "format/nothing_stored.h"

#include <algorithm>

#include "base/fail.h"

namespace shardwright {

Status check_something_stored(const Catalog& catalog, std::string_view path) {
  const bool has_elements = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return std::ranges::all_of(tensor.desc.shape, [](std::int64_t extent) { return extent > 0; });
  });
  if (has_elements) return {};
  const std::size_t tensors = catalog.tensors.size();
  const std::size_t objects = catalog.objects.size();
  std::string what = "its index names no tensor";
  if (tensors > 0) {
    what = translated("none of its {} tensors has an element", tensors);
  } else if (objects > 0) {
    what = translated("it has {} opaque entries and no tensor", objects);
  }
  return fail(Code::kNothingStored,
              "{}: no weights are stored here: {}; see that the copy is complete, or give the "
              "folder of another save",
              path, what);
}

Status check_common_state(const Checkpoint& checkpoint) {
  if (!checkpoint.location.traits.needs_common_state || !checkpoint.common_state.empty()) return {};
  if (checkpoint.directory->exists("common.pt")) return {};
  return fail(Code::kStateUnreadable,
              "common.pt: missing, and no common_state entry replaces it; Megatron loads nothing "
              "without it, and nothing says which model this is; copy it again");
}

}  // namespace shardwright
