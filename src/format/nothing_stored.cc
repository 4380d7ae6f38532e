// SPDX-License-Identifier: Apache-2.0
#include "format/nothing_stored.h"

#include <algorithm>

#include "base/fail.h"
#include "plan/canonical.h"
#include "remote/open_path.h"

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

std::string note_on_states_alone(const Checkpoint& checkpoint) {
  const std::vector<StoredTensor>& tensors = checkpoint.catalog.tensors;
  const bool is_alone = !tensors.empty() && std::ranges::all_of(tensors, [](const auto& tensor) {
    return is_optimizer_name(tensor.desc.name);
  });
  if (!is_alone) return {};
  constexpr std::string_view kBeside = "huggingface";  // where verl has the weights
  const std::string& path = checkpoint.location.path;
  const std::string beside = path.substr(0, path.find_last_of('/') + 1) + std::string(kBeside);
  const std::string where = is_folder(beside) ? translated("; {} may hold them", beside) : "";
  return translated("all {} tensors are optimizer states, the weights are elsewhere{}",
                    tensors.size(), where);
}

}  // namespace shardwright
