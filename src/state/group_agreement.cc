// SPDX-License-Identifier: Apache-2.0
#include "state/group_agreement.h"

#include <array>
#include <string_view>

#include "base/fail.h"
#include "codec/pickle_encode.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::string_view kStep = "step";

// By these Megatron finds a group in a checkpoint; what else a group has is its state.
constexpr std::array<std::string_view, 9> kIdentifiers = {
    "max_lr",  "min_lr",    "start_wd",           "end_wd",         "wd_mult",
    "lr_mult", "optimizer", "is_expert_parallel", "is_decoupled_lr"};

// A missing identifier and one that is None are the same to Megatron; NeMo calls some `pre_…`.
Result<std::string> identity_of(const Document& document, Value group) {
  std::string identity;
  for (const std::string_view key : kIdentifiers) {
    Value value = group.find(key);
    if (!value) value = group.find("pre_" + std::string(key));
    if (value && !value.is_none()) {
      identity += SW_TRY(pickle::encode(document, value, pickle::Protocol::kTwo));
    }
    identity += '\n';
  }
  return identity;
}

// What a group says of itself, for messages: plain values as Python writes them.
std::string shown(Value value) {
  if (const auto flag = value.is(Kind::kBool) ? value.as_bool() : std::nullopt) {
    return *flag ? "True" : "False";
  }
  if (const auto number = value.as_int()) return std::to_string(*number);
  if (const auto number = value.as_double()) return fmt::format("{}", *number);
  if (const auto text = value.as_string()) return fmt::format("'{}'", *text);
  return std::string(pickle::kind_name(value.kind()));
}

}  // namespace

Result<GroupAgreement::Group> GroupAgreement::read(const Document& document, Value group,
                                                   const std::string& holder) {
  Group read{SW_TRY(identity_of(document, group)), {}, holder};
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto key = group.key(i).as_string();
    if (!key || *key == "params") continue;  // numbers of the holder's own parameters
    const Value value = group.value(i);
    std::string bytes = SW_TRY(pickle::encode(document, value, pickle::Protocol::kTwo));
    read.settings.insert_or_assign(std::string(*key), Setting{std::move(bytes), shown(value)});
  }
  return read;
}

Result<std::vector<std::size_t>> GroupAgreement::add(const Document& document, Value list,
                                                     const std::string& holder) {
  std::vector<std::size_t> fresh;
  // Those of one holder are told apart by more than their identity, or it would have one.
  const std::size_t known_end = groups_.size();
  for (std::size_t g = 0; g < list.size(); ++g) {
    Group group = SW_TRY(read(document, list[g], holder));
    SW_TRY(check_step(group));
    const Group* unlike = nullptr;
    bool is_known = false;
    for (std::size_t k = 0; k < known_end && !is_known; ++k) {
      if (groups_[k].identity != group.identity) continue;
      is_known = check_alike(groups_[k], group).has_value();
      if (unlike == nullptr) unlike = &groups_[k];
    }
    if (is_known) continue;
    if (unlike != nullptr) return std::unexpected(check_alike(*unlike, group).error());
    fresh.push_back(g);
    groups_.push_back(std::move(group));
  }
  return fresh;
}

Status GroupAgreement::check_step(const Group& group) {
  if (!group.settings.contains(kStep)) return {};
  if (step_.holder.empty()) step_ = group;
  return check_setting(step_, group, std::string(kStep));
}

// Who had no parameters for a group may have no step there.
Status GroupAgreement::check_alike(const Group& known, const Group& group) const {
  for (const Settings* settings : {&known.settings, &group.settings}) {
    for (const auto& [name, setting] : *settings) {
      if (name != kStep) SW_TRY(check_setting(known, group, name));
    }
  }
  return {};
}

Status GroupAgreement::check_setting(const Group& known, const Group& group,
                                     const std::string& name) const {
  const auto of = [&](const Group& one) {
    const auto found = one.settings.find(name);
    return found == one.settings.end() ? Setting() : found->second;
  };
  const Setting expected = of(known);
  const Setting found = of(group);
  if (expected.bytes == found.bytes) return {};
  return fail(Code::kOptimizerMismatch,
              "{}: found {} {}, expected {} as in {}: one optimizer has one; {}", group.holder,
              name, found.shown, expected.shown, known.holder, way_out_);
}

}  // namespace shardwright
