// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_state.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "io/memory_directory.h"
#include "layout/fsdp_name.h"
#include "state/object_archive.h"
#include "state/plain_arguments.h"
#include "state/plain_value.h"
#include "state/reshardable_state.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::uint64_t kMostFsdpStateBytes = std::uint64_t{1} << 30;
constexpr std::string_view kArgs = "args";
constexpr std::string_view kScheduler = "opt_param_scheduler";
constexpr std::array<std::string_view, 3> kPlain = {"checkpoint_version", "iteration",
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
  Result<Value> groups() {
    std::map<std::string, Value, std::less<>> by_parameter;
    for (const StoredObject& object : catalog_.objects) {
      const auto entry = split_fsdp_group_entry(object.name);
      if (!entry) continue;
      Value& group = by_parameter.try_emplace(std::string(entry->parameter)).first->second;
      if (!group) group = document_.dict();
      document_.set(group, entry->key, SW_TRY(read(object)));
    }
    std::map<std::string, Value> distinct;
    for (const auto& [parameter, group] : by_parameter) {
      const Value sorted = sorted_dict(group);
      distinct.emplace(SW_TRY(pickle::encode(document_, sorted, pickle::Protocol::kTwo)), sorted);
    }
    std::vector<Value> groups;
    for (const auto& [pickled, group] : distinct) groups.push_back(group);
    std::ranges::stable_sort(groups, std::greater<>(), [](Value group) {
      return group.find("wd_mult").as_double().value_or(1.0);
    });
    return document_.list(groups);
  }

 private:
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
  for (const Value dict : dicts) {
    const Value list = dict.find("optimizer").find("param_groups");
    for (std::size_t i = 0; i < list.size(); ++i) groups.push_back(list[i]);
  }
  return groups;
}

// The group whose settings are those of the parameter: a model without experts of its own kind of
// group has them in the others.
Value group_for(const std::vector<Value>& groups, const GroupedParameter& parameter) {
  Value found;
  for (const Value group : groups) {
    const bool has_decay = group.find("wd_mult").as_double().value_or(1.0) != 0.0;
    if (has_decay != parameter.has_decay) continue;
    const bool is_expert = group.find("is_expert_parallel").as_bool().value_or(false);
    if (is_expert == parameter.is_expert) return group;
    if (!found) found = group;
  }
  return found;
}

class Splitting {
 public:
  explicit Splitting(const Document& document) : document_(document) {}

  Status add(std::string name, std::vector<std::string> path, Value value) {
    std::string bytes = SW_TRY(encode_value(document_, value));
    entries_.push_back({std::move(name), std::move(path), std::move(bytes)});
    return {};
  }

  Status add_groups(Value optimizer, const std::vector<GroupedParameter>& parameters) {
    const std::vector<Value> groups = param_groups_in(optimizer);
    if (groups.empty()) return {};
    if (const Value count = groups.front().find("step")) step_ = count.as_int();
    for (const GroupedParameter& parameter : parameters) {
      const Value group = group_for(groups, parameter);
      if (!group) {
        return fail(Code::kStateUnreadable,
                    "optimizer: no parameter group {} weight decay, which {} belongs to",
                    parameter.has_decay ? translated("with") : translated("without"),
                    parameter.name);
      }
      const auto entry = split_fsdp_group_entry(parameter.name + ".x");
      for (std::size_t i = 0; i < group.size(); ++i) {
        const std::string key(group.key(i).text());
        if (key == "params" || key == "step" || !entry) continue;
        const std::string outer = parameter.name.substr(kGroupRoot.size());
        SW_TRY(add(parameter.name + "." + key, {"optimizer", "param_to_group_meta", outer, key},
                   group.value(i)));
      }
    }
    return {};
  }

  SplitState take(std::int64_t iteration) {
    return {std::move(entries_), step_.value_or(iteration), false};
  }

 private:
  static constexpr std::string_view kGroupRoot = "optimizer.param_to_group_meta.";
  const Document& document_;
  std::vector<StateEntry> entries_;
  std::optional<std::int64_t> step_;
};

}  // namespace

Result<Arguments> read_fsdp_arguments(const Catalog& catalog, SourceFiles& files) {
  const bool is_fsdp = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return is_fsdp_model_name(tensor.desc.name);
  });
  const StoredObject* args = find_object(catalog, kArgs);
  if (args == nullptr || !is_fsdp) return Arguments{};
  const TorchArchive archive = SW_TRY(open_object(*args, files));
  return plain_arguments(archive.root());
}

Result<std::string> make_common_state(const Catalog& catalog, SourceFiles& files,
                                      bool with_optimizer, std::optional<std::int64_t> step) {
  const StoredObject* args = find_object(catalog, kArgs);
  if (args == nullptr) return std::string();
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
    const Value groups = SW_TRY(collection.groups());
    for (std::size_t i = 0; step && i < groups.size(); ++i) {
      document.set(groups[i], "step", document.integer(*step));
    }
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
      SW_TRY(splitting.add_groups(value, parameters));
      drops_loss_scale = static_cast<bool>(value.find("grad_scaler"));
    }
  }
  SplitState split = splitting.take(state.find("iteration").as_int().value_or(0));
  split.drops_loss_scale = drops_loss_scale;
  return split;
}

}  // namespace shardwright
