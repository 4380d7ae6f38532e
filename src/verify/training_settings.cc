// SPDX-License-Identifier: Apache-2.0
#include "verify/training_settings.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/fail.h"
#include "base/text.h"
#include "io/source_files.h"
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
    if (other == right.settings.end() || other->second.bytes == setting.bytes) continue;
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

// Those that are one to Megatron are compared; of several the one that is nearest.
void compare_groups(const std::vector<GroupSettings>& left, const std::vector<GroupSettings>& right,
                    std::vector<std::string>& differing) {
  for (std::size_t g = 0; g < left.size(); ++g) {
    std::vector<std::string> fewest;
    bool is_first = true;
    for (const GroupSettings& other : right) {
      if (other.identity != left[g].identity) continue;
      std::vector<std::string> found;
      compare(translated("parameter group {} of the optimizer", g), left[g], other, found);
      if (is_first || found.size() < fewest.size()) fewest = std::move(found);
      is_first = false;
    }
    std::ranges::move(fewest, std::back_inserter(differing));
  }
}

Status compare_common_states(const Checkpoint& left, const Checkpoint& right,
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
  for (const StoredObject& object : right.plan.source.objects)
    at_right.emplace(object.name, &object);
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
    SW_TRY(compare_common_states(left.checkpoint, right.checkpoint, differing));
  } else if (!left_has_state && !right_has_state) {
    SW_TRY(compare_objects(left, right, differing));
  }
  return differing;
}

}  // namespace shardwright
