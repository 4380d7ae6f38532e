// SPDX-License-Identifier: Apache-2.0
#include "state/component_groups.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/fail.h"
#include "base/text.h"
#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "state/joined_groups.h"
#include "state/object_archive.h"
#include "state/reshardable_state.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::string_view kGroups = "param_groups";
constexpr std::string_view kComponentSharding = "param_state_sharding_type";

std::string way_out() {
  return translated(
      "convert to another MIMO layout, or without optimizer states (--optimizer drop)");
}

// An entry has its value in a list of one, for it is one shard.
Result<std::string> encode_entry(Document& document, Value value) {
  const std::array<Value, 1> shards = {value};
  return encode_torch_object(
      SW_TRY(pickle::encode(document, document.list(shards), pickle::Protocol::kTwo)));
}

// The entries of one optimizer, or of one part of a chained one.
Status add_entries(Document& document, Value optimizer, std::int64_t part,
                   std::span<const std::string> components, ComponentGroups& made) {
  const Value list = optimizer.find("optimizer").find(kGroups);
  if (!list.is(Kind::kList) || list.size() == 0) {
    return fail(Code::kOptimizerUnsupported,
                "common state: found optimizer states and no parameter groups, expected those of "
                "the optimizer; convert without them (--optimizer drop)");
  }
  for (std::size_t g = 0; g < list.size(); ++g) document.set(list[g], "params", document.list());
  made.drops_loss_scale |= static_cast<bool>(optimizer.find("grad_scaler"));
  const std::string groups = SW_TRY(encode_entry(document, list));
  const std::string sharding = SW_TRY(encode_entry(document, document.string("fully_reshardable")));
  for (const std::string& component : components) {
    const std::string prefix = fmt::format("mimo.{0}.optimizer.mimo.{0}{1}.", component,
                                           part == 0 ? "" : fmt::format(".{}", part));
    made.entries.emplace_back(fmt::format("{}{}/shard_0_1", prefix, kGroups), groups);
    made.entries.emplace_back(fmt::format("{}{}/shard_0_1", prefix, kComponentSharding), sharding);
  }
  return {};
}

}  // namespace

std::optional<ComponentEntry> split_component_entry(std::string_view name) {
  constexpr std::string_view root = "mimo.";
  constexpr std::string_view middle = ".optimizer.mimo.";
  constexpr std::string_view end = "/shard_0_1";
  const std::size_t at = name.find(middle);
  if (!name.starts_with(root) || !name.ends_with(end) || at == std::string_view::npos) return {};
  ComponentEntry entry;
  entry.component = name.substr(root.size(), at - root.size());
  name.remove_suffix(end.size());
  name.remove_prefix(at + middle.size());
  if (!name.starts_with(entry.component)) return {};
  name.remove_prefix(entry.component.size());
  if (!name.starts_with('.')) return {};
  name.remove_prefix(1);
  if (const auto part = take_number(name)) {
    if (*part < 1 || !name.starts_with('.')) return {};
    entry.part = *part;
    name.remove_prefix(1);
  }
  entry.content = name;
  return entry;
}

Result<std::string> join_component_groups(const std::string& common_state, const Catalog& catalog,
                                          SourceFiles& files) {
  StateDocument state = SW_TRY(StateDocument::read(common_state));
  Document& document = state.document();
  std::map<std::int64_t, JoinedGroups> parts;
  for (const StoredObject& object : catalog.objects) {
    const std::optional<ComponentEntry> entry = split_component_entry(object.name);
    if (!entry || entry->content != kGroups) continue;
    const TorchArchive archive = SW_TRY(open_object(object, files));
    const Value root = archive.root();
    const Value list = root.is(Kind::kList) && root.size() == 1 ? root[0] : root;
    SW_TRY(parts.try_emplace(entry->part, document, way_out())
               .first->second.add(archive.document(), list, translated("entry {}", object.name)));
  }
  const Value optimizer = document.dict();
  for (auto& [part, groups] : parts) {
    const Value inner = document.dict();
    document.set(inner, kGroups, groups.take());
    document.add_pair(optimizer, document.integer(part), reshardable_optimizer(document, inner));
  }
  document.set(state.dict(), "optimizer", parts.size() == 1 ? optimizer.value(0) : optimizer);
  return state.encode();
}

Result<ComponentGroups> share_component_groups(const std::string& common_state,
                                               std::span<const std::string> components) {
  StateDocument state = SW_TRY(StateDocument::read(common_state));
  Document& document = state.document();
  const Value optimizer = state.dict().find("optimizer");
  ComponentGroups made;
  if (optimizer.find(std::int64_t{0})) {
    for (std::int64_t part = 0; optimizer.find(part); ++part) {
      SW_TRY(add_entries(document, optimizer.find(part), part, components, made));
    }
  } else {
    SW_TRY(add_entries(document, optimizer, 0, components, made));
  }
  document.erase(state.dict(), "optimizer");
  made.common_state = SW_TRY(state.encode());
  return made;
}

}  // namespace shardwright
