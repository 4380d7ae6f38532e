// SPDX-License-Identifier: Apache-2.0
#include "convert/carried_objects.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "base/translated.h"
#include "format/targets.h"
#include "layout/object_set.h"
#include "state/module_state.h"
#include "state/object_archive.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

// RNG and rerun state belong to ranks: they mean something only where the ranks stay the same.
bool is_per_rank(std::string_view name) {
  return name.starts_with("rng_state/") || name.starts_with("rng_state.") ||
         name.starts_with("rerun_state_machine_state/");
}

bool keeps_ranks(const ConvertRequest& request, const Arguments& arguments) {
  const auto same = [&](std::string_view name, std::int64_t size) {
    const auto found = number_of(arguments, {name});
    return found && *found == size;
  };
  return same("tensor_model_parallel_size", request.parallel.tensor) &&
         same("pipeline_model_parallel_size", request.parallel.pipeline) &&
         same("expert_model_parallel_size", request.parallel.expert);
}

// What the source lacks of what is carried; the output has nothing there, or what a module begins
// with.
void tell_lost_objects(const Catalog& source, const TargetParts& parts,
                       std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const StoredObject& object : source.objects) names.push_back(object.name);
  std::set<std::string_view> carried;
  for (const StoredObject& object : parts.copied_objects) {
    if (const auto part = object_part_of(object.name)) carried.insert(part->key);
  }
  for (LostPart& lost : lost_objects(names)) {
    if (carried.contains(lost.name)) notes.push_back(std::move(lost.what));
  }
}

bool is_module_state(const StoredObject& object) { return object.name.contains("._extra_state"); }

// Where these are left out, the largest shows whether any says something.
Status tell_module_states(std::span<const StoredObject> objects, SourceFiles& files,
                          std::vector<std::string>& notes) {
  const StoredObject* largest = nullptr;
  for (const StoredObject& object : objects) {
    if (!is_module_state(object)) continue;
    if (largest == nullptr || object.range.length > largest->range.length) largest = &object;
  }
  if (largest == nullptr) return {};
  const TorchArchive archive = SW_TRY(open_object(*largest, files));
  if (holds_module_state(archive.root())) notes.push_back(module_state_note(largest->name));
  return {};
}

}  // namespace

Status carry_objects(const ConvertRequest& request, const Checkpoint& source,
                     const Catalog& selected, TargetParts& parts, std::vector<std::string>& notes) {
  const bool same_ranks = keeps_ranks(request, source.arguments);
  std::size_t dropped = 0;
  std::vector<StoredObject> apart;
  for (const StoredObject& object : selected.objects) {
    if (object.name.starts_with("common_state/")) continue;
    if (is_per_rank(object.name) && !same_ranks) {
      ++dropped;
      continue;
    }
    // They are named for a layer's number, which the target may not have: it gets empty ones.
    const bool is_apart = source.location.traits.has_layers_apart && is_module_state(object);
    (is_apart ? apart : parts.copied_objects).push_back(object);
  }
  if (dropped > 0) {
    notes.push_back(translated(
        "{} RNG and rerun states are dropped: they belong to the ranks of the old layout",
        dropped));
  }
  tell_lost_objects(source.catalog, parts, notes);
  SW_TRY(tell_module_states(apart, *source.files, notes));
  // State dicts of ranks have these, each of its own shard.
  if (!traits_of(request.format).holds_state_dicts) return {};
  return tell_module_states(parts.copied_objects, *source.files, notes);
}

void say_whether_rng_is_there(const ConvertRequest& request, const TargetParts& parts,
                              ArgumentList& arguments) {
  if (traits_of(request.format).holds_state_dicts) return;
  const bool is_there = std::ranges::any_of(parts.copied_objects, [](const StoredObject& object) {
    return object.name.starts_with("rng_state");
  });
  if (!is_there) arguments.emplace_back("no_save_rng", true);
}

}  // namespace shardwright
