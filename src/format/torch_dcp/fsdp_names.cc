// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dcp/fsdp_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "base/allowance.h"
#include "base/fail.h"
#include "base/text.h"
#include "format/format_findings.h"
#include "format/fsdp_dtensor/fsdp_source.h"
#include "format/select.h"
#include "layout/fsdp_name.h"
#include "layout/module_order.h"
#include "layout/optimizer_groups.h"
#include "plan/canonical.h"
#include "state/object_archive.h"
#include "state/param_group.h"
#include "state/plain_value.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using Role = FsdpName::Role;

constexpr std::string_view kOptimizerKey = "optimizer.";

// `optimizer.optimizer.state.5.exp_avg` of a Float16Optimizer, `optimizer.state.5.exp_avg` of an
// FP32Optimizer, `optimizer.state.decoder.….exp_avg` of torch's own state dicts.
struct OptimizerState {
  std::string_view parameter;  // or its number
  Role role = Role::kStep;
};

// `optimizer.optimizer.param_groups.0.lr`
struct GroupEntry {
  std::int64_t group = 0;
  std::string_view key;
};

// `optimizer.fp32_from_fp16_params.0.5`
struct MasterEntry {
  std::int64_t group = 0;
  std::int64_t place = 0;
};

bool take(std::string_view& name, std::string_view part) {
  if (!name.starts_with(part)) return false;
  name.remove_prefix(part.size());
  return true;
}

bool take_part_of_torch(std::string_view& name, std::string_view part) {
  std::string_view rest = name;
  if (!take(rest, kOptimizerKey)) return false;
  take(rest, kOptimizerKey);
  if (!take(rest, part)) return false;
  name = rest;
  return true;
}

std::optional<OptimizerState> state_entry(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Role>, 4> kKinds = {{
      {"exp_avg", Role::kExpAvg},
      {"exp_avg_sq", Role::kExpAvgSq},
      {"momentum_buffer", Role::kMomentum},
      {"step", Role::kStep},
  }};
  if (!take_part_of_torch(name, "state.")) return std::nullopt;
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const auto found =
      std::ranges::find(kKinds, name.substr(dot + 1), &std::pair<std::string_view, Role>::first);
  if (found == kKinds.end()) return std::nullopt;
  name = name.substr(0, dot);
  while (take(name, "module.")) {
  }
  return OptimizerState{name, found->second};
}

std::optional<GroupEntry> group_entry(std::string_view name) {
  if (!take_part_of_torch(name, "param_groups.")) return std::nullopt;
  const auto group = take_number(name);
  if (!group || !take(name, ".")) return std::nullopt;
  return GroupEntry{*group, name};
}

std::optional<MasterEntry> master_entry(std::string_view name) {
  if (!take(name, "optimizer.fp32_from_fp16_params.")) return std::nullopt;
  const auto group = take_number(name);
  if (!group || !take(name, ".")) return std::nullopt;
  const auto place = take_number(name);
  if (!place || !name.empty()) return std::nullopt;
  return MasterEntry{*group, *place};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::unexpected<Error> refuse_entry(std::string_view name, std::string_view why) {
  return fail(Code::kOptimizerUnsupported,
              "entry {}: {}; convert without the optimizer (--optimizer drop)", name, why);
}

std::string state_name(std::string_view parameter, Role role) {
  FsdpName name = split_fsdp_parameter(parameter);
  name.role = role;
  return join_fsdp_name(name);
}

// The groups of parameters, and which parameter has which number.
class NumberedParameters {
 public:
  NumberedParameters(const Catalog& catalog, SourceFiles& files)
      : catalog_(catalog), files_(files) {}

  Status read() {
    for (const StoredTensor& tensor : catalog_.tensors) {
      std::string_view name = tensor.desc.name;
      if (!take(name, "model.") || !is_parameter(name, tensor.desc.dtype)) continue;
      parameters_.push_back({std::string(name), tensor.desc.dtype, tensor.desc.shape});
    }
    SW_TRY(read_groups());
    return has_numbers_ ? share_out_numbers() : Status();
  }

  [[nodiscard]] bool has_numbers() const { return has_numbers_; }
  [[nodiscard]] const std::vector<std::string>* of_group(std::int64_t group) const {
    const auto found = by_group_.find(group);
    return found == by_group_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::string* numbered(std::int64_t number) const {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : &found->second;
  }
  // Only weights of 16 bits have master weights apart.
  [[nodiscard]] const std::string* with_master(const MasterEntry& entry) const {
    const auto found = masters_.find(entry.group);
    const bool is_there = found != masters_.end() && entry.place >= 0 &&
                          std::cmp_less(entry.place, found->second.size());
    return is_there ? &found->second[static_cast<std::size_t>(entry.place)] : nullptr;
  }

 private:
  Status read_groups() {
    for (const StoredObject& object : catalog_.objects) {
      const auto entry = group_entry(object.name);
      if (!entry) continue;
      const TorchArchive archive = SW_TRY(open_object(object, files_));
      auto value = copy_plain_value(document_, archive.root());
      if (!value) return std::unexpected(std::move(value).error().within(object.name));
      Value& group = groups_[entry->group];
      if (!group) group = document_.dict();
      document_.set(group, entry->key, *value);
      if (entry->key == "params") SW_TRY(read_members(entry->group, *value, object.name));
    }
    return {};
  }

  Status read_members(std::int64_t group, Value members, std::string_view entry) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (const auto number = members[i].as_int()) {
        numbers_[group].push_back(*number);
        has_numbers_ = true;
      } else if (auto name = members[i].as_string()) {
        while (take(*name, "module.")) {
        }
        by_group_[group].emplace_back(*name);
      } else {
        return refuse_entry(entry, translated("found neither numbers nor names of parameters"));
      }
    }
    return {};
  }

  Status share_out_numbers() {
    std::vector<Value> groups;
    std::vector<std::int64_t> keys;
    for (const auto& [key, group] : groups_) {
      groups.push_back(group);
      keys.push_back(key);
    }
    const auto args = std::ranges::find(catalog_.objects, "args", &StoredObject::name);
    GroupRule rule;
    if (args == catalog_.objects.end()) {
      rule = read_group_rule({}, groups);
    } else {
      const TorchArchive archive = SW_TRY(open_object(*args, files_));
      rule = read_group_rule(archive.root(), groups);
    }
    const auto shares = SW_TRY(parameters_of_groups(parameters_, read_param_groups(groups), rule));
    for (std::size_t g = 0; g < keys.size(); ++g) {
      const std::vector<std::int64_t>& numbers = numbers_[keys[g]];
      for (std::size_t i = 0; i < shares[g].size() && i < numbers.size(); ++i) {
        const TensorDesc& parameter = parameters_[shares[g][i]];
        by_number_.emplace(numbers[i], parameter.name);
        by_group_[keys[g]].push_back(parameter.name);
        if (parameter.dtype != DType::kF32) masters_[keys[g]].push_back(parameter.name);
      }
    }
    return {};
  }

  const Catalog& catalog_;
  SourceFiles& files_;
  Document document_;
  std::vector<TensorDesc> parameters_;  // in the model's order, as its modules call them
  std::map<std::int64_t, Value> groups_;
  std::map<std::int64_t, std::vector<std::int64_t>> numbers_;
  std::map<std::int64_t, std::vector<std::string>> by_group_;
  std::map<std::int64_t, std::vector<std::string>> masters_;
  std::unordered_map<std::int64_t, std::string> by_number_;
  bool has_numbers_ = false;
};

}  // namespace

bool FsdpNames::has_numbers(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const std::string& name = tensor.desc.name;
    const auto state = state_entry(name);
    return master_entry(name) || (state && whole_number(state->parameter));
  });
}

namespace {

class KeptNames final : public FormatFindings {
 public:
  const FsdpNames& of(const Checkpoint& checkpoint) {
    std::call_once(is_found_,
                   [&] { names_ = FsdpNames::find(checkpoint.catalog, *checkpoint.files); });
    return names_;
  }

 private:
  std::once_flag is_found_;
  FsdpNames names_;
};

}  // namespace

std::shared_ptr<FormatFindings> FsdpNames::unfound() { return std::make_shared<KeptNames>(); }

// Only its own format asks.
const FsdpNames& FsdpNames::of(const Checkpoint& checkpoint) {
  return static_cast<KeptNames&>(*checkpoint.of_format).of(checkpoint);
}

FsdpNames FsdpNames::find(const Catalog& catalog, SourceFiles& files) {
  FsdpNames names;
  const Status named = names.name_states(catalog, files);
  if (!named) {
    names.unknown_ = named.error();
    names.names_.clear();
  }
  return names;
}

Status FsdpNames::name_states(const Catalog& catalog, SourceFiles& files) {
  NumberedParameters parameters(catalog, files);
  SW_TRY(parameters.read());
  has_numbers_ = parameters.has_numbers();
  std::uint64_t named_bytes = 0;  // by the files: a name for each entry
  for (const StoredTensor& tensor : catalog.tensors) named_bytes += tensor.desc.name.size();
  for (const StoredObject& object : catalog.objects) named_bytes += object.name.size();
  Allowance allowance(named_bytes);
  const auto name_entry = [&](const std::string& entry, bool is_tensor) -> Status {
    std::vector<std::string>& names = names_[entry];
    if (const auto state = state_entry(entry)) {
      const auto number = whole_number(state->parameter);
      const std::string* parameter = number ? parameters.numbered(*number) : nullptr;
      if (number && parameter == nullptr) {
        return refuse_entry(entry, translated("no parameter group has its number"));
      }
      names.push_back(state_name(number ? *parameter : state->parameter, state->role));
    } else if (const auto master = master_entry(entry)) {
      const std::string* parameter = parameters.with_master(*master);
      if (parameter == nullptr) {
        return refuse_entry(entry, translated("its group has no such parameter"));
      }
      names.push_back(state_name(*parameter, Role::kMaster));
    } else if (const auto group = group_entry(entry)) {
      const std::vector<std::string>* members = parameters.of_group(group->group);
      if (is_tensor && group->key != "step") {
        return refuse_entry(entry, translated("found a tensor, expected a setting"));
      }
      if (group->key == "params" || members == nullptr) return {};
      for (const std::string& member : *members) {
        SW_TRY(allowance.take(sizeof(std::string) + member.size() + group->key.size(),
                              "the settings of parameter groups"));
        const FsdpName split = split_fsdp_parameter(member);
        names.push_back(is_tensor
                            ? state_name(member, Role::kStep)
                            : join_fsdp_group_entry(split.parameter, split.expert, group->key));
      }
    } else if (split_fsdp_name(entry) || split_fsdp_group_entry(entry)) {
      names.push_back(entry);
    } else if (is_tensor) {
      return refuse_entry(entry, translated("no rule says whose state it is"));
    } else {
      names.push_back(entry);  // which is told of as what is no part of a training state
    }
    return {};
  };
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string& name = tensor.desc.name;
    if (name.starts_with(kOptimizerKey)) SW_TRY(name_entry(name, true));
  }
  for (const StoredObject& object : catalog.objects) {
    if (object.name.starts_with(kOptimizerKey)) SW_TRY(name_entry(object.name, false));
  }
  return {};
}

Catalog FsdpNames::apply(const Catalog& part) const {
  Catalog named;
  named.files = part.files;
  const auto names_of = [&](const std::string& name) -> std::vector<std::string> {
    if (auto weight = fsdp_model_name(name)) return {*std::move(weight)};
    if (!name.starts_with(kOptimizerKey)) return {name};
    const auto found = names_.find(name);
    return found == names_.end() ? std::vector<std::string>() : found->second;
  };
  for (const StoredTensor& tensor : part.tensors) {
    if (tensor.desc.name.ends_with("._extra_state")) continue;  // which a run makes anew
    for (std::string& name : names_of(tensor.desc.name)) {
      named.tensors.push_back(tensor);
      named.tensors.back().desc.name = std::move(name);
    }
  }
  for (const StoredObject& object : part.objects) {
    for (std::string& name : names_of(object.name)) {
      named.objects.push_back(object);
      named.objects.back().name = std::move(name);
    }
  }
  return named;
}

Status FsdpNames::check_masters(const Catalog& named) const {
  if (!has_numbers_) return {};
  std::set<std::string> rounded;  // weights of 16 bits
  std::set<std::string> mastered;
  std::vector<std::string> trained;
  for (const StoredTensor& tensor : named.tensors) {
    auto name = split_fsdp_name(tensor.desc.name);
    if (!name) continue;
    const Role role = std::exchange(name->role, Role::kModel);
    std::string weight = join_fsdp_name(*name);
    const bool is_rounded = tensor.desc.dtype == DType::kBF16 || tensor.desc.dtype == DType::kF16;
    if (role == Role::kModel) {
      if (is_rounded) rounded.insert(std::move(weight));
    } else if (role == Role::kMaster) {
      mastered.insert(std::move(weight));
    } else if (role == Role::kExpAvg || role == Role::kMomentum) {
      trained.push_back(std::move(weight));
    }
  }
  for (const std::string& weight : trained) {
    if (!rounded.contains(weight) || mastered.contains(weight)) continue;
    return fail(Code::kOptimizerUnsupported,
                "tensor {}: its optimizer state is there and its master weight in float32 is not; "
                "a part was lost: copy it too, or convert without states (--optimizer drop)",
                weight);
  }
  return {};
}

Status undo_torch_dcp(const ConvertRequest& request, Checkpoint& source, Catalog& wanted,
                      std::vector<std::string>& notes) {
  const bool has_states = std::ranges::any_of(wanted.tensors, [](const StoredTensor& tensor) {
    return is_optimizer_name(tensor.desc.name);
  });
  const FsdpNames& names = FsdpNames::of(source);
  if (has_states && names.unknown_states()) return std::unexpected(*names.unknown_states());
  source.catalog = names.apply(source.catalog);
  wanted = names.apply(wanted);
  if (has_states) SW_TRY(names.check_masters(wanted));
  return undo_fsdp(request, source, wanted, notes);
}

}  // namespace shardwright
