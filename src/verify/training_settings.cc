// SPDX-License-Identifier: Apache-2.0
#include "verify/training_settings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "base/text.h"
#include "io/source_files.h"
#include "plan/canonical.h"
#include "state/group_settings.h"
#include "state/object_archive.h"
#include "state/param_group.h"
#include "state/plain_value.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;

void compare(std::string_view holder, const GroupSettings& left, const GroupSettings& right,
             std::vector<std::string>& differing) {
  for (const auto& [name, setting] : left.settings) {
    const auto other = right.settings.find(name);
    const bool is_of_parts = name == "is_expert_parallel";  // which layouts join and divide
    if (is_of_parts || other == right.settings.end()) continue;
    if (other->second.bytes == setting.bytes) continue;
    differing.push_back(translated("{}: {} is {}, and on the right {}", holder, name, setting.shown,
                                   other->second.shown));
  }
}

Result<std::vector<GroupSettings>> groups_of(const Document& document, Value state) {
  std::vector<GroupSettings> groups;
  for (const Value optimizer : chained_optimizers(state.find("optimizer"))) {
    for (const Value group : param_groups_of(optimizer)) {
      groups.push_back(SW_TRY(read_group_settings(document, group)));
    }
  }
  return groups;
}

using Groups = std::vector<GroupSettings>;

// The fewest differences of a group from one of the others: of those that are one with it to
// Megatron, or of all where none is. Experts' groups may have been joined with others then.
template <class Compare>
std::vector<std::string> fewest_differences(const GroupSettings& group, const Groups& others,
                                            const Compare& differences_from) {
  const auto is_one = [&](const GroupSettings& other) { return other.identity == group.identity; };
  const bool has_one = std::ranges::any_of(others, is_one);
  std::optional<std::vector<std::string>> fewest;
  for (const GroupSettings& other : others) {
    if (has_one && !is_one(other)) continue;
    std::vector<std::string> found = differences_from(other);
    if (!fewest || found.size() < fewest->size()) fewest = std::move(found);
  }
  return fewest.value_or(std::vector<std::string>());
}

void compare_groups(const Groups& left, const Groups& right, std::vector<std::string>& differing) {
  const auto differences = [&](const GroupSettings& one, const GroupSettings& other) {
    std::vector<std::string> found;
    compare(translated("parameter group {} of the optimizer", &one - left.data()), one, other,
            found);
    return found;
  };
  const auto add = [&](std::vector<std::string> found) {
    for (std::string& sentence : found) {
      if (std::ranges::find(differing, sentence) != differing.end()) continue;
      differing.push_back(std::move(sentence));
    }
  };
  for (const GroupSettings& one : left) {
    add(fewest_differences(one, right, [&](const auto& other) { return differences(one, other); }));
  }
  for (const GroupSettings& other : right) {
    add(fewest_differences(other, left, [&](const auto& one) { return differences(one, other); }));
  }
}

// Of what both sides should have, as both have states.
void add_one_sided(std::string_view what, bool is_left, bool is_right,
                   std::vector<std::string>& differing) {
  if (is_left == is_right) return;
  differing.push_back(is_left ? translated("{}: on the left only", what)
                              : translated("{}: on the right only", what));
}

// The view has taken the checkpoint's catalog.
bool has_states_in(const View& view) {
  return std::ranges::any_of(view.plan.source.tensors, [](const StoredTensor& tensor) {
    return is_optimizer_name(tensor.desc.name);
  });
}

Status compare_common_states(const Checkpoint& left, const Checkpoint& right, bool both_have_states,
                             std::vector<std::string>& differing) {
  StateDocument one = SW_TRY(StateDocument::read(left.common_state));
  StateDocument other = SW_TRY(StateDocument::read(right.common_state));
  constexpr std::string_view scheduler = "opt_param_scheduler";
  const Value left_plan = one.dict().find(scheduler);
  const Value right_plan = other.dict().find(scheduler);
  if (left_plan && right_plan) {
    const GroupSettings left_settings = SW_TRY(read_group_settings(one.document(), left_plan));
    const GroupSettings right_settings = SW_TRY(read_group_settings(other.document(), right_plan));
    compare(scheduler, left_settings, right_settings, differing);
  }
  const auto left_groups = SW_TRY(groups_of(one.document(), one.dict()));
  const auto right_groups = SW_TRY(groups_of(other.document(), other.dict()));
  compare_groups(left_groups, right_groups, differing);
  if (!both_have_states) return {};
  add_one_sided(scheduler, static_cast<bool>(left_plan), static_cast<bool>(right_plan), differing);
  add_one_sided(translated("parameter groups of the optimizer"), !left_groups.empty(),
                !right_groups.empty(), differing);
  return {};
}

// Nothing where an entry holds more than plain values.
Result<std::optional<Setting>> plain_setting(const StoredObject& object, SourceFiles& files) {
  const TorchArchive archive = SW_TRY(open_object(object, files));
  Document plain;
  const Result<Value> value = copy_plain_value(plain, archive.root());
  if (!value) return std::optional<Setting>();
  return std::optional(SW_TRY(read_setting(plain, *value)));
}

// Of checkpoints without a common state, whose optimizers have a value of each kind for itself.
Status compare_objects(const View& left, const View& right, std::vector<std::string>& differing) {
  std::map<std::string_view, const StoredObject*> at_right;
  for (const StoredObject& object : right.plan.source.objects) {
    at_right.emplace(object.name, &object);
  }
  for (const StoredObject& object : left.plan.source.objects) {
    const auto other = at_right.find(object.name);
    if (other == at_right.end()) continue;
    const auto one = SW_TRY(plain_setting(object, *left.checkpoint.files));
    if (!one) continue;
    const auto another = SW_TRY(plain_setting(*other->second, *right.checkpoint.files));
    if (!another || one->bytes == another->bytes) continue;
    differing.push_back(translated("entry {}: {}, and on the right {}", printable(object.name),
                                   one->shown, another->shown));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> differing_training_settings(const View& left, const View& right) {
  std::vector<std::string> differing;
  const bool left_has_state = !left.checkpoint.common_state.empty();
  const bool right_has_state = !right.checkpoint.common_state.empty();
  if (left_has_state && right_has_state) {
    SW_TRY(compare_common_states(left.checkpoint, right.checkpoint,
                                 has_states_in(left) && has_states_in(right), differing));
  } else if (!left_has_state && !right_has_state) {
    SW_TRY(compare_objects(left, right, differing));
  }
  return differing;
}

}  // namespace shardwright
