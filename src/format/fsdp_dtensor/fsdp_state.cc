// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "format/fsdp_dtensor/fsdp_steps.h"
#include "io/memory_directory.h"
#include "layout/fsdp_name.h"
#include "layout/optimizer_groups.h"
#include "state/common_step.h"
#include "state/object_archive.h"
#include "state/param_group.h"
#include "state/plain_arguments.h"
#include "state/plain_value.h"
#include "state/reshardable_state.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::uint64_t kMostFsdpStateBytes = std::uint64_t{1} << 30;
constexpr std::string_view kArgs = "args";
constexpr std::string_view kScheduler = "opt_param_scheduler";
constexpr std::string_view kIteration = "iteration";
constexpr std::array<std::string_view, 3> kPlain = {"checkpoint_version", kIteration,
                                                    "num_floating_point_operations_so_far"};

const StoredObject* find_object(const Catalog& catalog, std::string_view name) {
  const auto found = std::ranges::find(catalog.objects, name, &StoredObject::name);
  return found == catalog.objects.end() ? nullptr : &*found;
}

Result<std::string> encode_value(const Document& document, Value value) {
  TorchLayoutOptions options;
  options.prefix = "archive";
  return encode_torch_object(SW_TRY(pickle::encode(document, value, pickle::Protocol::kTwo)),
                             options);
}

// Collects the entries of a catalog into one document.
class Collection {
 public:
  Collection(Document& document, const Catalog& catalog, SourceFiles& files)
      : document_(document), catalog_(catalog), files_(files) {}

  Result<Value> read(const StoredObject& object) {
    const TorchArchive archive = SW_TRY(open_object(object, files_));
    Result<Value> value = copy_plain_value(document_, archive.root());
    if (value) return value;
    return std::unexpected(std::move(value).error().within(translated("entry {}", object.name)));
  }

  Result<Value> scheduler() {
    const Value dict = document_.dict();
    for (const StoredObject& object : catalog_.objects) {
      if (!object.name.starts_with(kScheduler)) continue;
      if (object.name.size() <= kScheduler.size() + 1) continue;
      document_.set(dict, object.name.substr(kScheduler.size() + 1), SW_TRY(read(object)));
    }
    return dict;
  }

  // Parameters with the same settings make a group; those with weight decay come first, as
  // Megatron-Core orders them.
  Result<Value> groups(std::vector<std::string>& notes) {
    std::map<std::string, Value, std::less<>> by_parameter;
    for (const StoredObject& object : catalog_.objects) {
      const auto entry = split_fsdp_group_entry(object.name);
      if (!entry) continue;
      const Value setting = SW_TRY(read(object));
      for (std::string& parameter : fsdp_settings_of(*entry)) {
        Value& group = by_parameter.try_emplace(std::move(parameter)).first->second;
        if (!group) group = document_.dict();
        document_.set(group, entry->key, setting);
      }
    }
    std::map<std::string, SharedGroup> distinct;
    for (const auto& [parameter, group] : by_parameter) {
      const Value sorted = sorted_dict(group);
      SharedGroup& shared =
          distinct[SW_TRY(pickle::encode(document_, sorted, pickle::Protocol::kTwo))];
      shared.settings = sorted;
      shared.parameters.push_back(parameter);
    }
    SW_TRY(set_steps(distinct, notes));
    std::vector<Value> groups;
    for (const auto& [pickled, group] : distinct) groups.push_back(group.settings);
    std::ranges::stable_sort(groups, std::greater<>(), [](Value group) {
      return group.find("wd_mult").as_double().value_or(1.0);
    });
    return document_.list(groups);
  }

 private:
  struct SharedGroup {
    Value settings;
    std::vector<std::string> parameters;
  };

  // Parameters that were added later count fewer steps: the most counts.
  Status set_steps(const std::map<std::string, SharedGroup>& groups,
                   std::vector<std::string>& notes) {
    const FsdpSteps steps = SW_TRY(read_fsdp_steps(catalog_, files_));
    std::string first_uncounted;
    for (const auto& [pickled, group] : groups) {
      std::optional<std::int64_t> most;
      bool differ = steps.halves_differ;
      const std::string* uncounted = nullptr;
      for (const std::string& parameter : group.parameters) {
        const auto found = steps.by_parameter.find(parameter);
        if (steps.uncounted.contains(parameter) && uncounted == nullptr) uncounted = &parameter;
        if (found == steps.by_parameter.end()) continue;
        differ |= most && *most != found->second;
        most = std::max(most.value_or(0), found->second);
      }
      if (most && differ) {
        notes.push_back(translated("parameters differ in their steps: {} is kept", *most));
      }
      if (!most && uncounted != nullptr && !step_of_group(group.settings)) {
        most = SW_TRY(iteration_for(*uncounted));
        if (first_uncounted.empty()) first_uncounted = *uncounted;
      }
      if (most) document_.set(group.settings, "step", document_.integer(*most));
    }
    if (!first_uncounted.empty()) {
      notes.push_back(translated("{} and its like have no step: the iteration, {}, is taken",
                                 first_uncounted, SW_TRY(iteration_for(first_uncounted))));
    }
    return {};
  }

  Result<std::int64_t> iteration_for(const std::string& parameter) {
    const auto iteration = SW_TRY(read_fsdp_iteration(catalog_, files_));
    if (iteration) return *iteration;
    return fail(Code::kStateUnreadable,
                "{}: found Adam's states and neither a step nor the run's iteration, which tell "
                "how far they are; convert without them (--optimizer drop)",
                parameter);
  }

  Value sorted_dict(Value dict) {
    std::map<std::string, Value> pairs;
    for (std::size_t i = 0; i < dict.size(); ++i) {
      pairs.emplace(std::string(dict.key(i).text()), dict.value(i));
    }
    const Value sorted = document_.dict();
    for (const auto& [key, value] : pairs) document_.set(sorted, key, value);
    return sorted;
  }

  Document& document_;
  const Catalog& catalog_;
  SourceFiles& files_;
};

// Groups of the common state's optimizer, dense and experts' together.
std::vector<Value> param_groups_in(Value optimizer) {
  std::vector<Value> dicts = {optimizer};
  for (const std::int64_t index : {0, 1}) {
    if (const Value chained = optimizer.find(index)) dicts.push_back(chained);
  }
  std::vector<Value> groups;
  for (const Value dict : dicts)
    std::ranges::copy(param_groups_of(dict), std::back_inserter(groups));
  return groups;
}

// Groups that say the same are one: nothing has to tell them apart.
Result<std::vector<Value>> distinct_groups(const Document& document, std::vector<Value> groups) {
  std::set<std::string> known;
  std::vector<Value> distinct;
  for (const Value group : groups) {
    std::string settings = SW_TRY(settings_of_group(document, group, {"params"}));
    if (known.insert(std::move(settings)).second) distinct.push_back(group);
  }
  return distinct;
}

class Splitting {
 public:
  explicit Splitting(const Document& document) : document_(document) {}

  Status add(std::string name, std::vector<std::string> path, Value value) {
    std::string bytes = SW_TRY(encode_value(document_, value));
    entries_.push_back({std::move(name), std::move(path), std::move(bytes)});
    return {};
  }

  Status add_groups(Value optimizer, const std::vector<GroupedParameter>& parameters, Value args) {
    const std::vector<Value> groups =
        SW_TRY(distinct_groups(document_, param_groups_in(optimizer)));
    for (const Value group : groups) {
      const auto step = step_of_group(group);
      if (!step) continue;
      steps_differ_ |= step_ && *step_ != *step;
      step_ = std::max(step_.value_or(0), *step);
    }
    if (groups.empty() || parameters.empty()) return {};
    std::vector<TensorDesc> descs;
    for (const GroupedParameter& parameter : parameters) descs.push_back(parameter.desc);
    const auto shares =
        SW_TRY(share_out(descs, read_param_groups(groups), read_group_rule(args, groups)));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::size_t p : shares[g]) SW_TRY(add_settings(parameters[p].name, groups[g]));
    }
    return {};
  }

  // `uncounted`: the steps where the groups say none.
  SplitState take(std::int64_t uncounted) {
    return {std::move(entries_), step_.value_or(uncounted), std::move(steps_), steps_differ_,
            false};
  }

 private:
  Status add_settings(const std::string& parameter, Value group) {
    if (const auto step = step_of_group(group)) steps_.emplace(parameter, *step);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::string key(group.key(i).text());
      if (key == "params" || key == "step") continue;
      SW_TRY(add(parameter + "." + key, path_of_setting(parameter, key), group.value(i)));
    }
    return {};
  }

  const Document& document_;
  std::vector<StateEntry> entries_;
  std::optional<std::int64_t> step_;
  std::map<std::string, std::int64_t, std::less<>> steps_;
  bool steps_differ_ = false;
};

}  // namespace

std::vector<std::string> path_of_setting(std::string_view parameter, std::string_view key) {
  constexpr std::string_view kRoot = "optimizer.param_to_group_meta.";
  return {"optimizer", "param_to_group_meta", std::string(parameter.substr(kRoot.size())),
          std::string(key)};
}

Result<Arguments> read_fsdp_arguments(const Catalog& catalog, SourceFiles& files) {
  const bool is_fsdp = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const std::string& name = tensor.desc.name;
    return is_fsdp_model_name(name) || is_torch_dcp_model_name(name);
  });
  const StoredObject* args = find_object(catalog, kArgs);
  if (args == nullptr || !is_fsdp) return Arguments{};
  const TorchArchive archive = SW_TRY(open_object(*args, files));
  return plain_arguments(archive.root());
}

Result<std::optional<std::int64_t>> read_fsdp_iteration(const Catalog& catalog,
                                                        SourceFiles& files) {
  const StoredObject* entry = find_object(catalog, kIteration);
  if (entry == nullptr) return std::optional<std::int64_t>();
  const TorchArchive archive = SW_TRY(open_object(*entry, files));
  return archive.root().as_int();
}

bool is_fsdp_state_entry(std::string_view name) {
  return name == kArgs || name.starts_with(kScheduler) ||
         std::ranges::find(kPlain, name) != kPlain.end();
}

std::unexpected<Error> lacks_settings(std::string_view tensor, std::string_view parameter) {
  return fail(Code::kStateUnreadable,
              "tensor {}: found no optimizer settings of its parameter, expected entries {}.KEY; "
              "convert without its states (--optimizer drop)",
              tensor, parameter);
}

Status check_fsdp_settings(const Catalog& catalog) {
  std::set<std::string, std::less<>> with_settings;
  for (const StoredObject& object : catalog.objects) {
    if (const auto entry = split_fsdp_group_entry(object.name)) {
      for (std::string& parameter : fsdp_settings_of(*entry)) {
        with_settings.insert(std::move(parameter));
      }
    }
  }
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto name = split_fsdp_name(tensor.desc.name);
    if (!name || name->role == FsdpName::Role::kModel) continue;
    for (const std::string& parameter : fsdp_settings_of(*name)) {
      if (!with_settings.contains(parameter)) return lacks_settings(tensor.desc.name, parameter);
    }
  }
  return {};
}

Result<std::string> make_common_state(const Catalog& catalog, SourceFiles& files,
                                      bool with_optimizer, std::vector<std::string>& notes) {
  const StoredObject* args = find_object(catalog, kArgs);
  if (args == nullptr) {
    const bool has_settings =
        with_optimizer && std::ranges::any_of(catalog.objects, [](const StoredObject& object) {
          return split_fsdp_group_entry(object.name).has_value();
        });
    if (has_settings) {
      notes.emplace_back(
          "the optimizer's settings and steps are left out: the run's arguments (args), which "
          "they would stand beside, are missing");
    }
    return std::string();
  }
  const TorchArchive archive = SW_TRY(open_object(*args, files));
  const std::string text =
      SW_TRY(archive.zip().read(*archive.record("data.pkl"), kMostFsdpStateBytes));
  Document document = SW_TRY(pickle::decode(as_bytes(text)));
  const Value state = document.dict();
  document.set(state, kArgs, document.root());
  Collection collection(document, catalog, files);
  for (const std::string_view name : kPlain) {
    const StoredObject* object = find_object(catalog, name);
    if (object != nullptr) document.set(state, name, SW_TRY(collection.read(*object)));
  }
  document.set(state, kScheduler, SW_TRY(collection.scheduler()));
  if (with_optimizer) {
    const Value groups = SW_TRY(collection.groups(notes));
    const Value inner = document.dict();
    document.set(inner, "param_groups", groups);
    if (groups.size() > 0) {
      document.set(state, "optimizer", reshardable_optimizer(document, inner));
    }
  }
  document.set_root(state);
  TorchLayoutOptions options;
  options.prefix = "common";
  return encode_torch_object(SW_TRY(pickle::encode(document, pickle::Protocol::kTwo)), options);
}

Result<std::string> note_on_like_groups(const std::string& common_state) {
  if (common_state.empty()) return std::string();
  StateDocument state = SW_TRY(StateDocument::read(common_state));
  std::vector<OptimizerGroup> groups;
  for (const Value group : param_groups_in(state.dict().find("optimizer"))) {
    groups.push_back(read_param_group(group));
    for (std::size_t other = 0; other + 1 < groups.size(); ++other) {
      if (!groups[other].is_like(groups.back())) continue;
      return translated(
          "optimizer parameter groups {} and {} are for the same kind of parameters and differ in "
          "their settings: the output does not say which parameters are in which, a run's own "
          "settings do",
          other, groups.size() - 1);
    }
  }
  return std::string();
}

Result<SplitState> split_common_state(const std::string& common_state,
                                      const std::vector<GroupedParameter>& parameters) {
  MemoryDirectory memory;
  memory.put("common state", common_state);
  const std::unique_ptr<ReadableFile> file = SW_TRY(memory.open("common state"));
  const TorchArchive archive = SW_TRY(TorchArchive::open(*file));
  Value state = archive.root();
  if (state.is(Kind::kList) && state.size() == 1) state = state[0];
  Splitting splitting(archive.document());
  bool drops_loss_scale = false;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::string key(state.key(i).text());
    const Value value = state.value(i);
    if (key == kArgs || std::ranges::find(kPlain, key) != kPlain.end()) {
      SW_TRY(splitting.add(key, {key}, value));
    } else if (key == kScheduler) {
      for (std::size_t s = 0; s < value.size(); ++s) {
        const std::string inner(value.key(s).text());
        SW_TRY(splitting.add(key + "." + inner, {key, inner}, value.value(s)));
      }
    } else if (key == "optimizer") {
      SW_TRY(splitting.add_groups(value, parameters, state.find(kArgs)));
      drops_loss_scale = static_cast<bool>(value.find("grad_scaler"));
    }
  }
  const auto common = SW_TRY(common_step(common_state));
  const std::int64_t iteration = state.find("iteration").as_int().value_or(0);
  SplitState split = splitting.take(common ? std::llround(*common) : iteration);
  split.drops_loss_scale = drops_loss_scale;
  return split;
}

}  // namespace shardwright
