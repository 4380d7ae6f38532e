// SPDX-License-Identifier: Apache-2.0
#include "model/apply.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "model/adapter_rules.h"
#include "model/assemble.h"
#include "model/coverage.h"
#include "model/head_rules.h"
#include "model/instances.h"
#include "model/kept_alike.h"

namespace shardwright {
namespace {

using NameSet = std::set<std::string, std::less<>>;

/// `layers 32, heads 32`: the numbers that loops used, for messages.
std::string loop_sizes(const Mapping& mapping, const ModelSizes& sizes) {
  std::vector<std::string> words;
  for (const IndexRule& index : mapping.indices) {
    const auto found = sizes.find(index.size);
    if (found != sizes.end()) words.push_back(fmt::format("{} {}", index.size, found->second));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string plural(std::size_t count) {
  return translated("{} tensor{}", count, count == 1 ? "" : "s");
}

/// What to do where a whole part is missing that has checkpoints of its own.
std::string absent_part(const Mapping& mapping, std::span<const TensorDesc> hf,
                        std::span<const std::string> missing) {
  const auto part_of = [&](const std::string& name) { return part_name(mapping.parts, name).part; };
  const ModelPart* part = missing.empty() ? nullptr : part_of(missing[0]);
  const auto is_of_it = [&](const std::string& name) { return part_of(name) == part; };
  if (part == nullptr || !std::ranges::all_of(missing, is_of_it) ||
      std::ranges::any_of(hf, is_of_it, &TensorDesc::name)) {
    return {};
  }
  return translated(
      "; the model has nothing of its {}: 'shardwright split' it, then 'shardwright merge' the "
      "parts with --component {}=DIR (docs/recipes/merge.md)",
      part->name, part->name);
}

// Where a head alone is missing or too much, what was told of it is not so.
std::string head_advice(const ModelSizes& sizes, std::span<const std::string> unmatched,
                        std::span<const std::string> missing) {
  const auto tied = sizes.find("tied");
  const auto is_head = [](std::span<const std::string> names) {
    return names.size() == 1 && names[0].ends_with("output_layer.weight");
  };
  if (tied == sizes.end()) return {};
  if (tied->second == 0 && unmatched.empty() && is_head(missing)) {
    return translated(
        "; config.json or the arguments say that the output layer is not tied to the word "
        "embeddings (tie_word_embeddings false), and the checkpoint has none of its own: give a "
        "config.json that says true (--hf-config)");
  }
  if (tied->second != 0 && missing.empty() && is_head(unmatched)) {
    return translated(
        "; config.json or the arguments say that the output layer is tied to the word embeddings "
        "(tie_word_embeddings true), and the checkpoint has one of its own: give a config.json "
        "that says false (--hf-config)");
  }
  return {};
}

Status report_unmatched(const Mapping& mapping, const ModelSizes& sizes,
                        std::span<const std::string> unmatched,
                        std::span<const std::string> missing, std::string_view advice = {}) {
  if (!unmatched.empty()) {
    const std::string_view near = nearest_of(unmatched[0], missing);
    std::string hint = near.empty() ? "" : translated(" (nearest missing name: {})", near);
    return fail(Code::kUnmatchedSource,
                "family {}: {} without a rule: {}{}; check the family and its numbers ({}){}",
                mapping.family, plural(unmatched.size()), name_list(unmatched), hint,
                loop_sizes(mapping, sizes), advice);
  }
  if (!missing.empty()) {
    return fail(Code::kUnmatchedTarget,
                "family {}: {} missing that it needs: {}; check the family and its numbers ({}){}",
                mapping.family, plural(missing.size()), name_list(missing),
                loop_sizes(mapping, sizes), advice);
  }
  return {};
}

/// With a trial every shape that does not fit is counted there, and the first is the error.
Status add_instances(std::span<const Instance> instances, const TensorIndex& canonical,
                     Assembler& assembler, MappingTrial* trial) {
  for (const Instance& instance : instances) {
    const Status status = assembler.add_from_megatron(instance, canonical);
    if (status) continue;
    if (trial == nullptr || status.error().code != Code::kShapeMismatch) return status;
    if (++trial->mismatches == 1) trial->mismatch = status.error();
  }
  if (trial != nullptr && trial->mismatch) return std::unexpected(*trial->mismatch);
  return {};
}

/// What a mapping with these sizes says about a set of HF names.
struct HfClaims {
  Selection selection;
  std::vector<CopyInstance> copies;
  NameSet ignored;
  NameSet names;  // those of the set that are claimed
};

Result<HfClaims> claim_hf(const Mapping& mapping, const ModelSizes& sizes, const TensorIndex& hf) {
  HfClaims claims;
  claims.selection = SW_TRY((Selector(mapping, sizes, Side::kHf, hf, nullptr).select()));
  claims.copies = SW_TRY(copy_instances(mapping, sizes));
  claims.ignored = SW_TRY(ignored_names(mapping, sizes));
  for (const Instance& instance : claims.selection.instances) {
    const std::vector<std::string> names = SW_TRY(hf_names(mapping, sizes, instance));
    for (const std::string& name : names) {
      if (hf.contains(name)) claims.names.insert(name);
    }
  }
  for (const CopyInstance& copy : claims.copies) {
    if (hf.contains(copy.hf)) claims.names.insert(copy.hf);
  }
  for (const std::string& name : claims.ignored) {
    if (hf.contains(name)) claims.names.insert(name);
  }
  return claims;
}

/// The canonical names that a selection uses. An HF tensor that Megatron keeps plus a constant may
/// stand beside it as it was.
Result<NameSet> claim_megatron(const Mapping& mapping, const ModelSizes& sizes,
                               const Selection& selection, const std::vector<CopyInstance>& copies,
                               const TensorIndex& canonical) {
  NameSet names;
  for (const Instance& instance : selection.instances) {
    const Scope scope{sizes, instance.bindings};
    for (std::size_t part = 0; part < instance.rule->megatron.size(); ++part) {
      const TensorDesc* found = SW_TRY(find_megatron(*instance.rule, part, scope, canonical));
      if (found != nullptr) names.insert(found->name);
    }
    if (instance.rule->offset == 0.0) continue;
    const std::vector<std::string> kept = SW_TRY(hf_names(mapping, sizes, instance));
    for (const std::string& name : kept) names.insert(std::string(kHfExtraPrefix) + name);
  }
  for (const CopyInstance& copy : copies) names.insert(std::string(kHfExtraPrefix) + copy.hf);
  return names;
}

/// Adds the copies of an HF checkpoint: as copies while they may repeat their original, as tensors
/// of their own where they don't.
Status add_copies_from_hf(const HfClaims& claims, const TensorIndex& hf,
                          const FromHfOptions& options, Assembler& assembler,
                          std::vector<HfCopy>& copies) {
  const CopyIndex by_name(claims.copies);
  for (const CopyInstance& copy : claims.copies) {
    const TensorDesc* desc = hf.find(copy.hf);
    if (desc == nullptr) continue;
    const auto original =
        by_name.stored_original(copy, [&](const std::string& name) { return hf.contains(name); });
    const TensorDesc* source = original ? hf.find(*original) : nullptr;
    const bool may_repeat = source != nullptr && source->dtype == desc->dtype &&
                            source->shape == desc->shape &&
                            !options.differing_copies.contains(copy.hf);
    if (may_repeat) {
      copies.push_back(HfCopy{*desc, *original, copy.rule->emitted_by_default});
      continue;
    }
    TensorDesc extra = *desc;
    extra.name = std::string(kHfExtraPrefix) + desc->name;
    SW_TRY(assembler.add_identity(*desc, extra));
  }
  return {};
}

/// Adds the copies that an export writes.
Status add_copies_from_megatron(const std::vector<CopyInstance>& instances,
                                const TensorIndex& canonical, const TensorIndex* wanted,
                                const NameSet& left_out, Assembler& assembler,
                                std::vector<HfCopy>& copies) {
  const CopyIndex by_name(instances);
  for (const CopyInstance& copy : instances) {
    if (!copy.beside.empty() && assembler.find_hf(copy.beside) == nullptr) continue;
    const TensorDesc* extra = canonical.find(std::string(kHfExtraPrefix) + copy.hf);
    if (extra != nullptr) {
      TensorDesc desc = *extra;
      desc.name = copy.hf;
      SW_TRY(assembler.add_identity(desc, *extra));
      continue;
    }
    // What was left out had other values than its original: those come only where a model has to
    // have some.
    const bool is_known = wanted != nullptr && !left_out.contains(copy.hf);
    const bool is_emitted = is_known ? wanted->contains(copy.hf) : copy.rule->emitted_by_default;
    const auto original = by_name.stored_original(
        copy, [&](const std::string& name) { return assembler.find_hf(name) != nullptr; });
    if (!is_emitted || !original) continue;
    HfCopy result{*assembler.find_hf(*original), *original, copy.rule->emitted_by_default};
    result.desc.name = copy.hf;
    copies.push_back(std::move(result));
  }
  return {};
}

/// The wanted names that an export can't make must belong to layers that Megatron does not have, or
/// have been left out.
Status check_wanted(const Mapping& mapping, const ModelSizes& sizes, const TensorIndex& wanted,
                    const NameSet& left_out, Correspondence& result) {
  NameSet made;
  for (const MappedTensor& tensor : result.hf) made.insert(tensor.desc.name);
  for (const HfCopy& copy : result.copies) {
    made.insert(copy.desc.name);
    if (left_out.contains(copy.desc.name)) result.lacking.push_back(copy.desc.name);
  }
  const ModelSizes then = SW_TRY(observe_sizes(mapping, sizes, Side::kHf, wanted));
  const HfClaims before = SW_TRY(claim_hf(mapping, then, wanted));
  const HfClaims now = SW_TRY(claim_hf(mapping, sizes, wanted));
  std::vector<std::string> lost;
  for (const TensorDesc& desc : wanted.tensors()) {
    if (made.contains(desc.name)) continue;
    const bool is_dropped = before.ignored.contains(desc.name) ||
                            (before.names.contains(desc.name) && !now.names.contains(desc.name));
    const bool may_lack = left_out.contains(desc.name);
    (may_lack ? result.lacking : is_dropped ? result.ignored : lost).push_back(desc.name);
  }
  return report_unmatched(mapping, sizes, {}, lost);
}

Status check_wanted_shapes(const Correspondence& made, const TensorIndex& wanted) {
  // A head that is no copy of the embedding's has its rows.
  const auto has_grown_alike = [&](const TensorDesc& now, const TensorDesc& then) {
    return std::ranges::any_of(made.hf, [&](const MappedTensor& table) {
      const TensorDesc* was = table.vocabulary ? wanted.find(table.desc.name) : nullptr;
      return was != nullptr && was->shape == then.shape && table.desc.shape == now.shape;
    });
  };
  for (const MappedTensor& tensor : made.hf) {
    const TensorDesc* then = wanted.find(tensor.desc.name);
    if (then == nullptr || tensor.vocabulary || then->shape == tensor.desc.shape) continue;
    if (has_grown_alike(tensor.desc, *then)) continue;
    return fail(Code::kShapeMismatch,
                "tensor {}: found shape {} in the Megatron checkpoint, expected {} as it was "
                "imported",
                tensor.desc.name, to_string(tensor.desc.shape), to_string(then->shape));
  }
  return {};
}

/// What Megatron pins to a dtype of its own goes back to the one that it was imported in.
void restore_dtypes(Correspondence& made, const TensorIndex& wanted) {
  for (MappedTensor& tensor : made.hf) {
    const TensorDesc* then = wanted.find(tensor.desc.name);
    if (!tensor.pinned_dtype || then == nullptr) continue;
    if (is_castable_float(then->dtype) && is_castable_float(tensor.desc.dtype)) {
      tensor.desc.dtype = then->dtype;
    }
  }
}

/// What Megatron keeps beside layers that it does not have any more, though the configuration still
/// counts them.
Result<NameSet> extras_of_dropped(const Mapping& mapping, const ModelSizes& stated,
                                  const ModelSizes& actual, const NameSet& claimed,
                                  std::span<const TensorDesc> canonical) {
  const auto is_left = [&](const TensorDesc& tensor) {
    return tensor.name.starts_with(kHfExtraPrefix) && !claimed.contains(tensor.name);
  };
  NameSet names;
  if (!std::ranges::any_of(canonical, is_left)) return names;
  constexpr std::int64_t kMostDropped = 1024;
  ModelSizes then = actual;
  for (const IndexRule& index : mapping.indices) {
    const auto size = stated.find(index.size);
    if (!index.observed || size == stated.end()) continue;
    then.insert_or_assign(index.size, std::min(size->second, kMostDropped));
  }
  const std::vector<CopyInstance> copies = SW_TRY(copy_instances(mapping, then));
  for (const CopyInstance& copy : copies) names.insert(std::string(kHfExtraPrefix) + copy.hf);
  std::erase_if(names, [&](const std::string& name) { return claimed.contains(name); });
  return names;
}

std::vector<std::string> names_outside(std::span<const TensorDesc> tensors, const auto& is_known) {
  std::vector<std::string> names;
  for (const TensorDesc& tensor : tensors) {
    if (!is_known(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

// Adapters may stand alone or beside the weights that they belong to.
Result<Mapping> mapping_with_adapters(const Mapping& family, const ModelSizes& sizes,
                                      std::span<const TensorDesc> canonical) {
  AdapterLayout layout = adapter_layout(canonical);
  const auto ranks = [&](std::string_view name) {
    const auto found = sizes.find(name);
    return found == sizes.end() ? 1 : found->second;
  };
  layout.tensor = ranks(kAdapterTensor);
  layout.expert_tensor = ranks(kAdapterExpertTensor);
  layout.packs_experts = sizes.contains(kAdapterPacked);
  Mapping made = SW_TRY(adapter_mapping(family, layout));
  if (std::ranges::all_of(canonical, is_adapter_name, &TensorDesc::name)) return made;
  std::ranges::copy(family.items, std::back_inserter(made.items));
  std::ranges::copy(family.copies, std::back_inserter(made.copies));
  made.alike = family.alike;
  made.ignore = family.ignore;
  return made;
}

}  // namespace

Result<Correspondence> map_from_hf(const Mapping& family, const ModelSizes& sizes,
                                   std::span<const TensorDesc> hf, const FromHfOptions& options) {
  const TensorIndex index = SW_TRY(TensorIndex::make(hf));
  const std::optional<Mapping> headed = SW_TRY(with_head_of_hf(family, index));
  const Mapping& mapping = headed ? *headed : family;
  const ModelSizes actual = SW_TRY(observe_sizes(mapping, sizes, Side::kHf, index));
  HfClaims claims = SW_TRY(claim_hf(mapping, actual, index));
  std::vector<std::string> unmatched = names_outside(hf, [&](const std::string& name) {
    return claims.names.contains(name) || alike_in_megatron(mapping, name);
  });
  if (options.unknown != nullptr) *options.unknown = std::exchange(unmatched, {});
  std::vector<std::pair<const TensorDesc*, std::string>> alike;
  for (const TensorDesc& tensor : hf) {
    const auto name = alike_in_megatron(mapping, tensor.name);
    if (name && !claims.names.contains(tensor.name)) alike.emplace_back(&tensor, *name);
  }
  claims.names.clear();  // of a large model they take as much memory as what comes now
  std::vector<std::string> missing = std::move(claims.selection.missing);
  std::ranges::move(lacking_parts(mapping, Side::kHf, index), std::back_inserter(missing));
  SW_TRY(report_unmatched(mapping, actual, unmatched, missing,
                          unmatched.empty() ? absent_part(mapping, hf, missing) : ""));
  Assembler assembler(mapping, actual);
  for (const Instance& instance : claims.selection.instances) {
    SW_TRY(assembler.add_from_hf(instance, index));
  }
  for (const auto& [tensor, name] : alike) {
    SW_TRY(assembler.add_identity(*tensor, {name, tensor->dtype, tensor->shape}));
  }
  std::vector<HfCopy> copies;
  SW_TRY(add_copies_from_hf(claims, index, options, assembler, copies));
  Correspondence result = std::move(assembler).take();
  result.copies = std::move(copies);
  result.lacking = std::move(claims.selection.lacking);
  for (const std::string& name : claims.ignored) {
    if (index.contains(name)) result.ignored.push_back(name);
  }
  SW_TRY(check_blocks(result));
  return result;
}

Result<Correspondence> map_from_megatron(const Mapping& family, const ModelSizes& sizes,
                                         std::span<const TensorDesc> canonical,
                                         const HfWanted* wanted,
                                         const FromMegatronOptions& options) {
  const TensorIndex index = SW_TRY(TensorIndex::make(canonical));
  std::optional<TensorIndex> wanted_index;
  if (wanted != nullptr) wanted_index = SW_TRY(TensorIndex::make(wanted->tensors));
  const TensorIndex* wish = wanted_index ? &*wanted_index : nullptr;
  const std::optional<AdapterRanks> ranks = SW_TRY(adapter_ranks(canonical));
  const std::optional<Mapping> other =
      ranks ? std::optional(SW_TRY(mapping_with_adapters(family, sizes, canonical)))
            : SW_TRY(with_head_of_megatron(family, index, wish, options.head));
  const Mapping& mapping = other ? *other : family;
  ModelSizes known = sizes;
  if (ranks && ranks->dense) known.insert_or_assign(std::string(kAdapterRank), *ranks->dense);
  if (ranks && ranks->experts) {
    known.insert_or_assign(std::string(kExpertAdapterRank), *ranks->experts);
  }
  const ModelSizes actual = SW_TRY(observe_sizes(mapping, known, Side::kMegatron, index));
  Selection selection = SW_TRY((Selector(mapping, actual, Side::kMegatron, index, wish).select()));
  const std::vector<CopyInstance> instances = SW_TRY(copy_instances(mapping, actual));
  const NameSet claimed = SW_TRY(claim_megatron(mapping, actual, selection, instances, index));
  const NameSet dropped = SW_TRY(extras_of_dropped(mapping, known, actual, claimed, canonical));
  std::vector<std::string> unmatched = names_outside(canonical, [&](const auto& name) {
    return claimed.contains(name) || dropped.contains(name) ||
           alike_in_hf(mapping, name, nullptr) ||
           std::ranges::find(mapping.computed, name) != mapping.computed.end();
  });
  std::vector<std::string> missing = selection.missing;
  std::ranges::move(lacking_parts(mapping, Side::kMegatron, index), std::back_inserter(missing));
  Assembler assembler(mapping, actual);
  if (options.trial != nullptr && !(unmatched.empty() && missing.empty())) {
    // Hints for one family after the other would take a tenth of the time.
    const bool is_near = (unmatched.size() + missing.size()) * 2 <= canonical.size();
    *options.trial = {std::move(missing), std::move(unmatched), 0, {}};
    if (is_near) {
      SW_TRY(add_instances(selection.instances, index, assembler, options.trial));
    }
    return fail(Code::kUnmatchedSource, "family {}: other tensors", mapping.family);
  }
  SW_TRY(report_unmatched(mapping, actual, unmatched, missing,
                          head_advice(actual, unmatched, missing)));
  SW_TRY(add_instances(selection.instances, index, assembler, options.trial));
  for (const TensorDesc& tensor : canonical) {
    const auto name = alike_in_hf(mapping, tensor.name, wish);
    if (!name || claimed.contains(tensor.name)) continue;
    SW_TRY(assembler.add_identity({*name, tensor.dtype, tensor.shape}, tensor));
  }
  std::vector<HfCopy> copies;
  SW_TRY(add_copies_from_megatron(
      instances, index, wish, wanted != nullptr ? wanted->left_out : NameSet(), assembler, copies));
  Correspondence result = std::move(assembler).take();
  result.copies = std::move(copies);
  if (wish != nullptr) {
    SW_TRY(check_wanted(mapping, actual, *wish, wanted->left_out, result));
    SW_TRY(check_wanted_shapes(result, *wish));
    restore_dtypes(result, *wish);
  } else {
    result.lacking = std::move(selection.lacking);
  }
  for (const TensorDesc& tensor : canonical) {
    if (dropped.contains(tensor.name)) result.ignored.push_back(tensor.name);
  }
  SW_TRY(check_blocks(result));
  return result;
}

}  // namespace shardwright
