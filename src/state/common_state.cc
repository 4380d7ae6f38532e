// SPDX-License-Identifier: Apache-2.0
#include "state/common_state.h"

#include <array>
#include <set>

#include "base/endian.h"
#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "state/param_group.h"
#include "state/plain_arguments.h"
#include "state/reshardable_state.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

// Enums that Megatron-Core has had since 0.12; a newer one in a pickle stops an older loader.
constexpr std::array<std::string_view, 4> kOldEnums = {"AttnBackend", "ModelType", "RerunMode",
                                                       "RerunState"};

// What Python 3.11 alone makes of an enum's member, `getattr(Class, "name")` or, of a signal, the
// global `signal.SIGTERM`: the member's name. Loaders that take only weights refuse both.
Value named_member(Document& document, Value value) {
  if (value.is(Kind::kGlobal) && value.module() == "signal")
    return document.string(std::string(value.name()));
  if (!value.is(Kind::kReduce) || !value.callable().is_global("builtins", "getattr")) return {};
  const Value pair = value.args();
  if (pair.size() != 2 || !pair[0].is(Kind::kGlobal) || !pair[1].is(Kind::kString)) return {};
  return pair[0].module().starts_with("megatron.") ? pair[1] : Value();
}

// The member of an enum that not every Megatron-Core version can load, as its plain value; else
// nothing.
Value plain_member(Document& document, Value value) {
  if (const Value name = named_member(document, value)) return name;
  if (!value.is(Kind::kReduce) || !value.callable().is(Kind::kGlobal)) return {};
  const Value cls = value.callable();
  if (!cls.module().starts_with("megatron.")) return {};
  for (const std::string_view old : kOldEnums) {
    if (cls.name() == old) return {};
  }
  if (value.args().size() != 1) return {};
  const Value member = value.args()[0];
  return member.is(Kind::kInt) || member.is(Kind::kString) ? member : Value();
}

void flatten_new_enums(Document& document, Value args, std::vector<std::string>& notes) {
  const Value attributes = args.state();
  if (!attributes.is(Kind::kDict)) return;
  std::vector<std::pair<std::string, Value>> replaced;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string name(attributes.key(i).text());
    const Value value = attributes.value(i);
    if (const Value member = plain_member(document, value)) replaced.emplace_back(name, member);
    if (!value.is(Kind::kList)) continue;
    for (std::size_t e = 0; e < value.size(); ++e) {
      const Value member = plain_member(document, value[e]);
      if (!member) continue;
      document.set_element(value, e, member);
      notes.push_back(translated(
          "args.{} is stored as plain values: not every Megatron-Core loads its enum", name));
    }
  }
  for (const auto& [name, member] : replaced) {
    document.set(attributes, name, member);
    notes.push_back(translated(
        "args.{} is stored as a plain value: not every Megatron-Core loads its enum", name));
  }
}

// Of the model's parameters, as Megatron derives it from its flags.
void set_dtype(Document& document, Value args, DType dtype) {
  document.set_attribute(args, "bf16", document.boolean(dtype == DType::kBF16));
  document.set_attribute(args, "fp16", document.boolean(dtype == DType::kF16));
  if (!args.attribute("params_dtype")) return;
  document.set_attribute(args, "params_dtype", document.global("torch", torch_name(dtype)));
}

Value copy_dict(Document& document, Value from) {
  const Value copy = document.dict();
  for (std::size_t i = 0; i < from.size(); ++i) {
    document.add_pair(copy, from.key(i), from.value(i));
  }
  return copy;
}

bool is_of_experts(Value group) { return read_param_group(group).is_expert; }

// The part of an optimizer with other groups.
Value with_groups(Document& document, Value part, const std::vector<Value>& groups) {
  const Value inner = copy_dict(document, part.find("optimizer"));
  document.set(inner, "param_groups", document.list(groups));
  const Value outer = copy_dict(document, part);
  document.set(outer, "optimizer", inner);
  return outer;
}

// Parameter groups of the experts' own optimizer where nothing was said of them: the groups with
// weight decay, marked as expert parallel (experts have no norms, and biases are rare).
std::vector<Value> groups_for_experts(Document& document, const std::vector<Value>& dense) {
  std::vector<Value> groups;
  for (const Value each : dense) {
    const std::optional<double> decay = each.find("wd_mult").as_double();
    if (decay && *decay == 0.0) continue;
    const Value group = copy_dict(document, each);
    document.set(group, "is_expert_parallel", document.boolean(true));
    groups.push_back(group);
  }
  return groups;
}

// What a group says but for whose it is.
Result<std::string> settings_of(const Document& document, Value group) {
  return settings_of_group(document, group, {"params", "is_expert_parallel"});
}

// Muon and the Adam beside it are a chain too, which has nothing to do with experts.
bool is_chain_of_others(Value optimizer) {
  for (std::int64_t number = 0;; ++number) {
    const Value part = optimizer.find(number);
    if (!part) return false;
    const Value groups = part.find("optimizer").find("param_groups");
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!read_param_group(groups[i]).has_betas) return true;
    }
  }
}

// A run without expert parallelism has its experts among the others: their own groups say nothing
// where they say the same, and are kept where they do not.
Status join_experts(Document& document, Value state, std::vector<std::string>& notes) {
  const Value optimizer = state.find("optimizer");
  const Value dense = optimizer.find(std::int64_t{0});
  std::vector<Value> groups = param_groups_of(dense);
  std::set<std::string> said;
  for (const Value group : groups) said.insert(SW_TRY(settings_of(document, group)));
  std::vector<Value> of_experts;
  bool differ = false;
  for (std::int64_t number = 1; const Value part = optimizer.find(number); ++number) {
    for (const Value group : param_groups_of(part)) {
      differ |= !said.contains(SW_TRY(settings_of(document, group)));
      of_experts.push_back(group);
    }
  }
  if (!differ) {
    document.set(state, "optimizer", dense);
    notes.push_back("optimizer parameter groups of dense and expert parameters are joined");
    return {};
  }
  groups.insert(groups.end(), of_experts.begin(), of_experts.end());
  document.set(state, "optimizer", with_groups(document, dense, groups));
  notes.push_back(
      "optimizer parameter groups of dense and expert parameters are joined; those of experts, "
      "which have other settings or steps, are kept apart, and a run that loads torch_dist without "
      "expert parallelism does not ask for them");
  return {};
}

// Megatron-Core writes one optimizer's dict as it is, and those of dense and expert parameters
// under 0 and 1 where experts are sharded apart. Its own loader cannot go from one to the other.
Status regroup_optimizer(Document& document, Value state, bool experts_apart,
                         std::vector<std::string>& notes) {
  const Value optimizer = state.find("optimizer");
  if (!optimizer.is(Kind::kDict)) return {};
  const bool is_apart = optimizer.find(std::int64_t{0}).is(Kind::kDict);
  if (is_apart == experts_apart || is_chain_of_others(optimizer)) return {};
  if (is_apart) return join_experts(document, state, notes);
  if (!optimizer.find("optimizer").find("param_groups").is(Kind::kList)) return {};
  std::vector<Value> dense;
  std::vector<Value> of_experts;
  for (const Value group : param_groups_of(optimizer)) {
    (is_of_experts(group) ? of_experts : dense).push_back(group);
  }
  if (of_experts.empty()) of_experts = groups_for_experts(document, dense);
  const Value both = document.dict();
  document.add_pair(both, document.integer(0), with_groups(document, optimizer, dense));
  document.add_pair(both, document.integer(1), with_groups(document, optimizer, of_experts));
  document.set(state, "optimizer", both);
  notes.push_back("optimizer parameter groups are split into dense and expert parameters");
  return {};
}

}  // namespace

Result<CommonState> CommonState::read(std::string bytes) {
  auto state = std::make_shared<const StateDocument>(SW_TRY(StateDocument::read(bytes)));
  Arguments arguments = SW_TRY(plain_arguments(state->dict().find("args")));
  return CommonState(std::move(bytes), std::move(state), std::move(arguments));
}

std::optional<std::int64_t> CommonState::iteration() const {
  const Value iteration = state_->dict().find("iteration");
  return iteration ? iteration.as_int() : std::nullopt;
}

StateSharding CommonState::sharding() const { return sharding_of(state_->dict()); }

Result<std::string> CommonState::encode(const CommonStateEdits& edits,
                                        std::vector<std::string>& notes) const {
  StateDocument edited = SW_TRY(StateDocument::read(bytes_));
  Document& document = edited.document();
  const Value state = edited.dict();
  if (const Value args = state.find("args")) {
    for (const auto& [name, value] : edits.arguments) {
      document.set_attribute(args, name, make_plain_value(document, value));
    }
    if (edits.dtype) set_dtype(document, args, *edits.dtype);
    flatten_new_enums(document, args, notes);
  }
  if (edits.numbered_layers) {
    document.set(state, "content_metadata",
                 make_content_metadata(document, *edits.numbered_layers));
  }
  if (edits.iteration && !state.find("iteration")) {
    document.set(state, "iteration", document.integer(*edits.iteration));
  }
  if (edits.drop_optimizer) {
    document.erase(state, "optimizer");
  } else {
    SW_TRY(regroup_optimizer(document, state, edits.has_experts_apart, notes));
    if (edits.says_reshardable) say_reshardable(document, state);
  }
  return edited.encode();
}

Result<std::string> new_common_state(const std::vector<std::pair<std::string, ArgValue>>& arguments,
                                     std::int64_t iteration, bool has_numbered_layers) {
  Document document;
  const Value args = document.object(document.global("argparse", "Namespace"));
  for (const auto& [name, value] : arguments) {
    document.set_attribute(args, name, make_plain_value(document, value));
  }
  const Value state = document.dict();
  document.set(state, "args", args);
  document.set(state, "checkpoint_version", document.real(3.0));
  document.set(state, "iteration", document.integer(iteration));
  document.set(state, "content_metadata", make_content_metadata(document, has_numbered_layers));
  document.set_root(state);
  TorchLayoutOptions options;
  options.prefix = "common";
  return encode_torch_object(SW_TRY(pickle::encode(document, pickle::Protocol::kTwo)), options);
}

Result<std::string> empty_extra_state() {
  Document document;
  const std::array<Value, 1> nothing = {document.none()};
  document.set_root(document.list(nothing));
  return encode_torch_object(SW_TRY(pickle::encode(document, pickle::Protocol::kTwo)));
}

}  // namespace shardwright
