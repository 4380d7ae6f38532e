// SPDX-License-Identifier: Apache-2.0
#include "state/group_settings.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

// By these Megatron finds a group in a checkpoint; what else a group has is its state.
constexpr std::array<std::string_view, 9> kIdentifiers = {
    "max_lr",  "min_lr",    "start_wd",           "end_wd",         "wd_mult",
    "lr_mult", "optimizer", "is_expert_parallel", "is_decoupled_lr"};

// Plain values as Python writes them, where numbers and sequences look alike that are equal;
// nothing for others.
std::optional<std::string> plain_text(Value value) {
  if (value.is_none()) return "None";
  if (const auto flag = value.is(Kind::kBool) ? value.as_bool() : std::nullopt) {
    return *flag ? "True" : "False";
  }
  if (const auto number = value.as_int()) return std::to_string(*number);
  if (const auto number = value.as_double()) return fmt::format("{}", *number);
  if (const auto text = value.as_string()) return fmt::format("'{}'", *text);
  if (!value.is(Kind::kList) && !value.is(Kind::kTuple)) return {};
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Value element = value[i];
    const bool is_nested = element.is(Kind::kList) || element.is(Kind::kTuple);
    const std::optional<std::string> one = is_nested ? std::nullopt : plain_text(element);
    if (!one) return {};
    text += (i == 0 ? "" : ", ") + *one;
  }
  return "(" + text + ")";
}

// A missing identifier and one that is None are the same to Megatron; NeMo calls some `pre_…`.
Result<std::string> identity_of(const Document& document, Value group) {
  std::string identity;
  for (const std::string_view key : kIdentifiers) {
    Value value = group.find(key);
    if (!value) value = group.find("pre_" + std::string(key));
    if (value && !value.is_none()) {
      identity += SW_TRY(read_setting(document, value)).bytes;
    }
    identity += '\n';
  }
  return identity;
}

// Types of torch are written as names too, and anyone reads those.
bool is_class(Value value) {
  constexpr std::string_view kSmall = "abcdefghijklmnopqrstuvwxyz";
  if (!value.is(Kind::kGlobal)) return false;
  return value.module() != "torch" || !kSmall.contains(value.name().front());
}

// In lists and dicts too.
bool has_class(const Document& document, Value value) {
  std::vector<bool> seen(document.node_count(), false);
  std::vector<Value> pending{value};
  while (!pending.empty()) {
    const Value next = pending.back();
    pending.pop_back();
    if (is_class(next)) return true;
    if (seen[next.id()]) continue;
    seen[next.id()] = true;
    // What is called to make a tensor is no setting.
    const bool holds_values = next.is(Kind::kList) || next.is(Kind::kTuple) || next.is(Kind::kDict);
    if (holds_values) document.append_references(next, pending);
  }
  return false;
}

}  // namespace

Result<Setting> read_setting(const Document& document, Value value) {
  if (std::optional<std::string> text = plain_text(value)) return Setting{*text, *text};
  return Setting{SW_TRY(pickle::encode(document, value, pickle::Protocol::kTwo)),
                 std::string(pickle::kind_name(value.kind()))};
}

Result<GroupSettings> read_group_settings(const Document& document, Value group) {
  GroupSettings read{SW_TRY(identity_of(document, group)), {}};
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto key = group.key(i).as_string();
    if (!key || *key == "params") continue;
    read.settings.insert_or_assign(std::string(*key),
                                   SW_TRY(read_setting(document, group.value(i))));
  }
  return read;
}

std::vector<Value> chained_optimizers(Value optimizer) {
  std::vector<Value> parts;
  for (std::int64_t i = 0; optimizer.find(i); ++i) parts.push_back(optimizer.find(i));
  const bool is_one = optimizer.find("optimizer") || optimizer.find("param_groups");
  if (parts.empty() && is_one) parts.push_back(optimizer);
  return parts;
}

std::set<std::string> erase_classes(Document& document, Value optimizer) {
  std::set<std::string> names;
  for (const Value part : chained_optimizers(optimizer)) {
    for (const Value group : param_groups_of(part)) {
      std::vector<std::string> classes;
      for (std::size_t i = 0; i < group.size(); ++i) {
        const auto key = group.key(i).as_string();
        if (key && has_class(document, group.value(i))) classes.emplace_back(*key);
      }
      for (const std::string& name : classes) document.erase(group, name);
      names.insert(classes.begin(), classes.end());
    }
  }
  return names;
}

}  // namespace shardwright
