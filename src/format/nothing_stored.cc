// SPDX-License-Identifier: Apache-2.0
#include "format/nothing_stored.h"

#include <algorithm>

#include "base/fail.h"
#include "format/detect.h"
#include "plan/canonical.h"
#include "remote/open_path.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

// Where verl's workers have their weights, and adapters that they train on a model that stays.
constexpr std::string_view kModelBesideStates = "huggingface";
constexpr std::string_view kAdaptersBesideStates = "adapter_checkpoint";

std::string beside(const Checkpoint& checkpoint, std::string_view name) {
  const std::string& path = checkpoint.location.path;
  return path.substr(0, path.find_last_of('/') + 1) + std::string(name);
}

std::string place_of_weights(const Checkpoint& checkpoint) {
  if (const auto model = model_beside_states(checkpoint)) return translated("; give {}", *model);
  std::string told;
  if (const std::string model = beside(checkpoint, kModelBesideStates); is_folder(model)) {
    told += translated("; {} describes the model and has none", model);
  }
  if (const std::string own = beside(checkpoint, kAdaptersBesideStates); is_folder(own)) {
    told += translated(
        "; {} has what was trained, adapters in verl's own files, which verl loads onto the model "
        "that the run began with",
        own);
  }
  return told;
}

}  // namespace

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
  if (checkpoint.directory->exists(kCommonStateFile)) return {};
  return fail(Code::kStateUnreadable,
              "common.pt: missing, and no common_state entry replaces it; Megatron loads nothing "
              "without it, and nothing says which model this is; copy it again");
}

bool holds_states_alone(const Catalog& catalog) {
  return !catalog.tensors.empty() &&
         std::ranges::all_of(catalog.tensors, [](const StoredTensor& tensor) {
           return is_optimizer_name(tensor.desc.name);
         });
}

std::optional<std::string> model_beside_states(const Checkpoint& checkpoint) {
  if (!holds_states_alone(checkpoint.catalog)) return std::nullopt;
  const std::string place = beside(checkpoint, kModelBesideStates);
  const auto directory = open_directory(place);
  if (!directory) return std::nullopt;
  const auto found = detect(**directory);
  const bool is_there =
      found && !found->candidates.empty() && found->candidates.front().folder.empty();
  return is_there ? std::optional(place) : std::nullopt;
}

std::string note_on_states_alone(const Checkpoint& checkpoint) {
  if (!holds_states_alone(checkpoint.catalog)) return {};
  return translated("all {} tensors are optimizer states, the weights are elsewhere{}",
                    checkpoint.catalog.tensors.size(), place_of_weights(checkpoint));
}

}  // namespace shardwright
