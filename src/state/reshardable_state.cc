// SPDX-License-Identifier: Apache-2.0
#include "state/reshardable_state.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "codec/torch_tensor.h"
#include "layout/bucket_name.h"
#include "state/joined_groups.h"
#include "state/object_archive.h"
#include "state/plain_value.h"
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

// The scaler of an fp16 run's gradients, which every rank has alike: numbers, and the scale as a
// tensor.
Result<Value> copy_scaler(StateDocument& state, const TorchArchive& archive) {
  constexpr std::uint64_t kMostBytes = 64;
  const Value root = archive.root();
  const Value scaler = root.is(Kind::kList) && root.size() == 1 ? root[0] : root;
  Document& document = state.document();
  const Value made = document.dict();
  for (std::size_t i = 0; i < scaler.size(); ++i) {
    const Value key = SW_TRY(copy_plain_value(document, scaler.key(i)));
    const Value value = scaler.value(i);
    if (!is_tensor(value)) {
      document.add_pair(made, key, SW_TRY(copy_plain_value(document, value)));
      continue;
    }
    const LocatedTensor place = SW_TRY(archive.locate(value));
    const std::int64_t elements = SW_TRY(element_count(place.shape));
    const std::uint64_t bytes = place.range.length;
    if (bytes > kMostBytes || !place.strides.empty() ||
        static_cast<std::int64_t>(bytes) != elements * bytes_of(place.dtype)) {
      return fail(Code::kStateUnreadable, "the loss scale: found {} {}, expected a few numbers",
                  torch_name(place.dtype), to_string(place.shape));
    }
    std::string contents(bytes, '\0');
    SW_TRY(archive.zip().file().read_at(place.range.offset,
                                        std::as_writable_bytes(std::span(contents))));
    document.add_pair(made, key, state.add_tensor(place.dtype, place.shape, std::move(contents)));
  }
  return made;
}

// Each part's entries whose names go on with `what`.
DomainEntries entries_of(const Catalog& catalog, std::string_view what) {
  DomainEntries entries;
  for (const StoredObject& object : catalog.objects) {
    const auto domain = split_domain_name(object.name);
    if (!domain || !domain->rest.starts_with(what)) continue;
    entries[domain->part].emplace(domain->group, &object);
  }
  return entries;
}

bool is_chained(const Catalog& catalog) {
  return std::ranges::any_of(catalog.objects, [](const StoredObject& object) {
    const auto domain = split_domain_name(object.name);
    return domain && domain->is_chained;
  });
}

Status set_groups(StateDocument& text, const Catalog& catalog, SourceFiles& files) {
  Document& document = text.document();
  const Value state = text.dict();
  const DomainEntries entries = entries_of(catalog, "optimizer/");
  SW_TRY(check_parts(entries, catalog));
  std::map<std::int64_t, Value> parts;
  for (const auto& [part, ranks] : entries) {
    const Value groups = SW_TRY(join_domains(document, ranks, files));
    parts.emplace(part, reshardable_optimizer(document, groups));
  }
  for (const auto& [part, ranks] : entries_of(catalog, "grad_scaler/")) {
    const auto optimizer = parts.find(part);
    if (optimizer == parts.end()) continue;
    const StoredObject& first = *ranks.begin()->second;
    const TorchArchive archive = SW_TRY(open_object(first, files));
    Result<Value> scaler = copy_scaler(text, archive);
    if (!scaler) {
      return std::unexpected(std::move(scaler).error().within(translated("entry {}", first.name)));
    }
    document.set(optimizer->second, "grad_scaler", *scaler);
  }
  if (!parts.empty() && !is_chained(catalog)) {
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
  SW_TRY(set_groups(text, catalog, files));
  if (!state.find(kContent).is(Kind::kDict)) {
    document.set(state, kContent, make_content_metadata(document, numbered_layers));
  }
  say_reshardable(document, state);
  return text.encode();
}

}  // namespace shardwright
