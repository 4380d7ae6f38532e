// SPDX-License-Identifier: Apache-2.0
#include "state/reshardable_state.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "layout/bucket_name.h"
#include "state/joined_groups.h"
#include "state/object_archive.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::string_view kSharding = "param_state_sharding_type";
constexpr std::string_view kReshardable = "fully_reshardable";

// Each part's entries, by the ranks of its model-parallel group.
using DomainEntries = std::map<std::int64_t, std::map<std::int64_t, const StoredObject*>>;

// A rank without parameters for a group has it without a step, or not at all.
Result<Value> join_domains(Document& document,
                           const std::map<std::int64_t, const StoredObject*>& ranks,
                           SourceFiles& files) {
  constexpr std::string_view groups = "param_groups";
  JoinedGroups joined(document,
                      translated("keep the files of one save only, or convert without optimizer "
                                 "states (--optimizer drop)"));
  for (const auto& [rank, object] : ranks) {
    const TorchArchive archive = SW_TRY(open_object(*object, files));
    // The dict of one optimizer is in a list of one.
    const Value root = archive.root();
    const Value inner = root.is(Kind::kList) && root.size() == 1 ? root[0] : root;
    SW_TRY(
        joined.add(archive.document(), inner.find(groups), translated("entry {}", object->name)));
  }
  const Value inner = document.dict();
  document.set(inner, groups, joined.take());
  return inner;
}

// States whose groups are lost would be those of no optimizer.
Status check_parts(const DomainEntries& entries, const Catalog& catalog) {
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto domain = split_domain_name(tensor.desc.name);
    if (!domain || entries.contains(domain->part)) continue;
    return fail(Code::kStateUnreadable,
                "tensor {}: found optimizer states without the parameter groups of that optimizer; "
                "convert without them (--optimizer drop)",
                tensor.desc.name);
  }
  return {};
}

Status set_groups(Document& document, Value state, const Catalog& catalog, SourceFiles& files) {
  DomainEntries entries;
  bool is_chained = false;
  for (const StoredObject& object : catalog.objects) {
    const auto domain = split_domain_name(object.name);
    if (!domain || !domain->rest.starts_with("optimizer/")) continue;
    is_chained |= domain->is_chained;
    entries[domain->part].emplace(domain->group, &object);
  }
  SW_TRY(check_parts(entries, catalog));
  std::map<std::int64_t, Value> parts;
  for (const auto& [part, ranks] : entries) {
    const Value groups = SW_TRY(join_domains(document, ranks, files));
    parts.emplace(part, reshardable_optimizer(document, groups));
  }
  if (!parts.empty() && !is_chained) {
    document.set(state, "optimizer", parts.begin()->second);
  } else if (!parts.empty()) {
    const Value both = document.dict();
    for (const auto& [part, optimizer] : parts) {
      document.add_pair(both, document.integer(part), optimizer);
    }
    document.set(state, "optimizer", both);
  }
  return {};
}

constexpr std::string_view kContent = "content_metadata";
constexpr std::string_view kContentSharding = "distrib_optim_sharding_type";

// The dicts that may say how an optimizer's states were saved: of one, or of the parts of a chain.
std::vector<Value> optimizers_of(Value state) {
  const Value optimizer = state.find("optimizer");
  std::vector<Value> dicts = {optimizer};
  for (std::size_t i = 0; i < optimizer.size(); ++i) dicts.push_back(optimizer.value(i));
  return dicts;
}

}  // namespace

Value reshardable_optimizer(Document& document, Value inner) {
  const Value optimizer = document.dict();
  document.set(optimizer, "optimizer", inner);
  document.set(optimizer, kSharding, document.string(kReshardable));
  return optimizer;
}

void say_reshardable(Document& document, Value state) {
  for (const Value dict : optimizers_of(state)) {
    if (dict.find(kSharding)) document.set(dict, kSharding, document.string(kReshardable));
  }
  const Value content = state.find(kContent);
  document.set(content, kContentSharding, document.string(kReshardable));
  document.set(content, "chained_optim_avoid_prefix", document.boolean(true));
}

StateSharding sharding_of(Value state) {
  const auto text_of = [](Value value) { return std::string(value.as_string().value_or("")); };
  StateSharding sharding;
  sharding.content = text_of(state.find(kContent).find(kContentSharding));
  for (const Value dict : optimizers_of(state)) {
    if (const Value own = dict.find(kSharding)) sharding.optimizers.push_back(text_of(own));
  }
  return sharding;
}

Result<std::string> make_reshardable(const std::string& common_state, const Catalog& catalog,
                                     SourceFiles& files, bool numbered_layers) {
  StateDocument text = SW_TRY(StateDocument::read(common_state));
  Document& document = text.document();
  const Value state = text.dict();
  SW_TRY(set_groups(document, state, catalog, files));
  if (!state.find(kContent).is(Kind::kDict)) {
    document.set(state, kContent, make_content_metadata(document, numbered_layers));
  }
  say_reshardable(document, state);
  return text.encode();
}

}  // namespace shardwright
