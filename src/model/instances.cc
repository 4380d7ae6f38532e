// SPDX-License-Identifier: Apache-2.0
#include "model/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

// They bound what a hostile configuration can make us enumerate: a model has the names of its
// tensors, once for each option of a choice, and those of the options that it does not use.
constexpr std::int64_t kMaxLoop = std::int64_t{1} << 20;
constexpr std::size_t kNamesPerTensor = 16;
constexpr std::size_t kSpareNames = std::size_t{1} << 19;
constexpr std::int64_t kMaxObserved = 1024;

/// The rules inside the sections that loop over `index`, however deep.
void collect_looping(std::span<const Item> items, std::string_view index, bool inside,
                     std::vector<const Rule*>& rules) {
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value); rule != nullptr && inside) {
      rules.push_back(rule);
    }
    if (const auto* section = std::get_if<Section>(&item.value)) {
      collect_looping(section->items, index, inside || section->index == index, rules);
    }
    if (const auto* choice = std::get_if<Choice>(&item.value)) {
      for (const auto& option : choice->options) collect_looping(option, index, inside, rules);
    }
  }
}

/// Whether a tensor exists that only the loop's k-th turn can name.
bool shows_turn(const std::vector<const Rule*>& rules, const ModelSizes& sizes, Side side,
                const Binding& turn, const TensorIndex& present) {
  for (const Rule* rule : rules) {
    const std::vector<Binding> bindings{turn, Binding{rule->stack, 0}};
    for (const NameTemplate& name : side == Side::kHf ? rule->hf : rule->megatron) {
      if (!name.uses(turn.name)) continue;
      const Result<std::string> text = name.render(Scope{sizes, bindings});
      if (text && present.contains(*text)) return true;
    }
  }
  return false;
}

Result<std::vector<std::vector<Binding>>> turns_of(const Mapping& mapping, const ModelSizes& sizes,
                                                   const std::string& index) {
  if (index.empty()) return std::vector<std::vector<Binding>>{{}};
  const std::int64_t count = SW_TRY(loop_count(mapping, sizes, index));
  std::vector<std::vector<Binding>> turns;
  for (std::int64_t i = 0; i < count; ++i) turns.push_back({Binding{index, i}});
  return turns;
}

/// The shape that a renaming rule states of its tensor on one side; nothing where it does not say.
/// Forms of a model that have the same names are told apart by it.
std::optional<Dims> stated_shape(const Rule& rule, const Scope& scope, Side side) {
  const bool says = std::holds_alternative<Rename>(rule.transform) && rule.stack.empty() &&
                    !rule.vocabulary && !rule.shape.empty();
  if (!says) return std::nullopt;
  const bool is_permuted = side == Side::kHf && !rule.permute.empty();
  Dims shape = Dims::filled(static_cast<int>(rule.shape.size()), 0);
  for (int axis = 0; axis < shape.size(); ++axis) {
    const Result<std::int64_t> extent = rule.shape[static_cast<std::size_t>(axis)].evaluate(scope);
    const std::int64_t at = is_permuted ? rule.permute[axis] : axis;
    if (!extent || at >= shape.size()) return std::nullopt;
    shape[static_cast<int>(at)] = *extent;
  }
  return shape;
}

/// Whether a tensor of that side is what a rule states of its only one.
bool fits_shapes(const Rule& rule, const Scope& scope, const TensorDesc& tensor, Side side) {
  const std::optional<Dims> shape = stated_shape(rule, scope, side);
  return !shape || *shape == tensor.shape;
}

}  // namespace

Result<TensorIndex> TensorIndex::make(std::span<const TensorDesc> tensors) {
  TensorIndex index;
  index.tensors_ = tensors;
  index.by_name_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!index.by_name_.emplace(tensors[i].name, i).second) {
      return fail(Code::kDuplicateName, "tensor {} is listed twice", tensors[i].name);
    }
  }
  return index;
}

const TensorDesc* TensorIndex::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

bool holds(const std::optional<Condition>& condition, const ModelSizes& sizes,
           std::span<const Binding> bindings) {
  if (!condition) return true;
  auto found = sizes.find(condition->size);
  const auto layer = std::ranges::find(bindings, "layer", &Binding::name);
  if (found == sizes.end() && layer != bindings.end()) {
    found = sizes.find(layer_size_name(condition->size, layer->value));
  }
  return (found != sizes.end() && found->second != 0) == condition->non_zero;
}

Result<std::int64_t> loop_count(const Mapping& mapping, const ModelSizes& sizes,
                                std::string_view index) {
  const auto rule = std::ranges::find(mapping.indices, index, &IndexRule::name);
  if (rule == mapping.indices.end()) {
    return fail(Code::kInternal, "loop variable '{}' is not defined", index);
  }
  const auto size = std::ranges::find(mapping.sizes, rule->size, &SizeRule::name);
  const bool may_lack = size != mapping.sizes.end() && size->optional;
  if (may_lack && !sizes.contains(rule->size)) return 0;
  const std::int64_t count = SW_TRY((Scope{sizes, {}}.value_of(rule->size)));
  if (count < 0 || count > kMaxLoop) {
    return fail(Code::kLimit, "size '{}': found {}, expected 0 to {}", rule->size, count, kMaxLoop);
  }
  return count;
}

Result<std::vector<std::string>> hf_names(const Mapping& mapping, const ModelSizes& sizes,
                                          const Instance& instance) {
  const Rule& rule = *instance.rule;
  const std::int64_t turns =
      rule.stack.empty() ? 1 : SW_TRY(loop_count(mapping, sizes, rule.stack));
  std::vector<Binding> bindings = instance.bindings;
  if (!rule.stack.empty()) bindings.push_back(Binding{rule.stack, 0});
  std::vector<std::string> names;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    if (!rule.stack.empty()) bindings.back().value = turn;
    for (const NameTemplate& name : rule.hf) {
      names.push_back(SW_TRY(name.render(Scope{sizes, bindings})));
    }
  }
  return names;
}

Result<const TensorDesc*> find_megatron(const Rule& rule, std::size_t part, const Scope& scope,
                                        const TensorIndex& canonical) {
  const std::string name = SW_TRY(rule.megatron[part].render(scope));
  const TensorDesc* found = canonical.find(name);
  for (const NameTemplate& alias : rule.aliases) {
    if (found != nullptr) break;
    const std::string other = SW_TRY(alias.render(scope));
    found = canonical.find(other);
  }
  return found;
}

Result<Selection> Selector::select() {
  Selection selection;
  Bindings bindings;
  SW_TRY(visit(mapping_.items, bindings, selection));
  return selection;
}

Status Selector::spend(std::size_t names) {
  spent_ += names;
  const std::size_t limit = kSpareNames + kNamesPerTensor * present_.tensors().size();
  if (spent_ <= limit) return {};
  return fail(Code::kLimit,
              "family {}: these sizes make more than {} tensor names; check the numbers of "
              "layers and experts",
              mapping_.family, limit);
}

Status Selector::visit(std::span<const Item> items, Bindings& bindings, Selection& selection) {
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) {
      SW_TRY(visit_rule(*rule, bindings, selection));
    } else if (const auto* section = std::get_if<Section>(&item.value)) {
      SW_TRY(visit_section(*section, bindings, selection));
    } else {
      SW_TRY(visit_choice(std::get<Choice>(item.value), bindings, selection));
    }
  }
  return {};
}

Status Selector::visit_rule(const Rule& rule, const Bindings& bindings, Selection& selection) {
  if (!holds(rule.condition, sizes_, bindings)) return {};
  Instance instance{&rule, bindings};
  const Scope scope{sizes_, bindings};
  std::vector<std::string> missing;
  std::size_t present = 0;
  if (side_ == Side::kHf) {
    const std::vector<std::string> names = SW_TRY(hf_names(mapping_, sizes_, instance));
    SW_TRY(spend(names.size()));
    for (const std::string& name : names) {
      if (const TensorDesc* tensor = present_.find(name)) {
        ++present;
        if (!fits_shapes(rule, scope, *tensor, Side::kHf)) ++selection.misfits;
      } else {
        missing.push_back(name);
      }
    }
  } else {
    SW_TRY(spend(rule.megatron.size()));
    for (std::size_t part = 0; part < rule.megatron.size(); ++part) {
      const TensorDesc* tensor = SW_TRY(find_megatron(rule, part, scope, present_));
      if (tensor != nullptr) {
        ++present;
        if (!fits_shapes(rule, scope, *tensor, Side::kMegatron)) ++selection.misfits;
      } else {
        missing.push_back(SW_TRY(rule.megatron[part].render(scope)));
      }
    }
  }
  if (rule.optional && present == 0) {
    if (rule.expected) {
      std::vector<std::string> names = SW_TRY(hf_names(mapping_, sizes_, instance));
      std::ranges::move(names, std::back_inserter(selection.lacking));
    }
    return {};
  }
  selection.present += present;
  std::ranges::move(missing, std::back_inserter(selection.missing));
  selection.instances.push_back(std::move(instance));
  return {};
}

Status Selector::visit_section(const Section& section, Bindings& bindings, Selection& selection) {
  if (!holds(section.condition, sizes_, bindings)) return {};
  if (section.index.empty()) return visit(section.items, bindings, selection);
  const std::int64_t count = SW_TRY(loop_count(mapping_, sizes_, section.index));
  bindings.push_back(Binding{section.index, 0});
  for (std::int64_t i = 0; i < count; ++i) {
    SW_TRY(spend(1));
    bindings.back().value = i;
    SW_TRY(visit(section.items, bindings, selection));
  }
  bindings.pop_back();
  return {};
}

Status Selector::visit_choice(const Choice& choice, Bindings& bindings, Selection& selection) {
  Selection best;
  bool has_best = false;
  std::size_t best_wanted = 0;
  const auto told = sizes_.find(choice.told_by);
  for (const std::vector<Item>& option : choice.options) {
    // Files of Hugging Face's names may have what config.json denies: transformers passes it over,
    // and writers of GPTQ files add it.
    const bool is_denied = told != sizes_.end() && told->second == 0 && side_ == Side::kMegatron;
    const bool is_asked = told != sizes_.end() && told->second != 0;
    if (option.empty() ? is_asked : is_denied) continue;
    Selection candidate;
    SW_TRY(visit(option, bindings, candidate));
    const std::size_t wanted = SW_TRY(wanted_names(candidate));
    const bool complete = candidate.missing.empty();
    const bool best_complete = best.missing.empty();
    // A complete option beats an incomplete one; among incomplete ones the nearest is the one to
    // complain about; among complete ones that whose shapes are there, then the written
    // checkpoint's own form, then the one that leaves least, then the first.
    const auto rank = [](const Selection& chosen, std::size_t likeness) {
      const auto misfits = static_cast<std::ptrdiff_t>(chosen.misfits);
      return chosen.missing.empty() ? std::tuple(-misfits, likeness, chosen.present)
                                    : std::tuple(std::ptrdiff_t{0}, chosen.present, std::size_t{0});
    };
    const bool better =
        !has_best ||
        (complete != best_complete ? complete : rank(candidate, wanted) > rank(best, best_wanted));
    if (!better) continue;
    best = std::move(candidate);
    best_wanted = wanted;
    has_best = true;
  }
  selection.present += best.present;
  selection.misfits += best.misfits;
  std::ranges::move(best.missing, std::back_inserter(selection.missing));
  std::ranges::move(best.lacking, std::back_inserter(selection.lacking));
  std::ranges::move(best.instances, std::back_inserter(selection.instances));
  return {};
}

Result<std::size_t> Selector::wanted_names(const Selection& option) const {
  std::size_t count = 0;
  if (wanted_ == nullptr) return count;
  for (const Instance& instance : option.instances) {
    const std::vector<std::string> names = SW_TRY(hf_names(mapping_, sizes_, instance));
    const Scope scope{sizes_, instance.bindings};
    for (const std::string& name : names) {
      const TensorDesc* tensor = wanted_->find(name);
      if (tensor != nullptr && fits_shapes(*instance.rule, scope, *tensor, Side::kHf)) ++count;
    }
  }
  return count;
}

Result<ModelSizes> observe_sizes(const Mapping& mapping, ModelSizes sizes, Side side,
                                 const TensorIndex& present) {
  for (const IndexRule& index : mapping.indices) {
    if (!index.observed) continue;
    std::vector<const Rule*> rules;
    collect_looping(mapping.items, index.name, false, rules);
    std::int64_t count = 0;
    while (shows_turn(rules, sizes, side, Binding{index.name, count}, present)) {
      if (++count > kMaxObserved) {
        return fail(Code::kLimit,
                    "size '{}': the tensors' names show more than {}, the most that is read",
                    index.size, kMaxObserved);
      }
    }
    sizes[index.size] = count;
  }
  for (const SizeRule& size : mapping.sizes) {
    for (const SizeShown& shown : size.shown_by) {
      const TensorDesc* tensor = present.find(side == Side::kHf ? shown.hf : shown.megatron);
      if (tensor == nullptr || tensor->shape.size() <= shown.axis) continue;
      sizes[size.name] = tensor->shape[shown.axis];
      break;
    }
  }
  return sizes;
}

Result<std::vector<CopyInstance>> copy_instances(const Mapping& mapping, const ModelSizes& sizes) {
  std::vector<CopyInstance> copies;
  for (const CopyRule& rule : mapping.copies) {
    if (!holds(rule.condition, sizes)) continue;
    const auto turns = SW_TRY(turns_of(mapping, sizes, rule.hf.index));
    const auto inner = SW_TRY(turns_of(mapping, sizes, rule.inner));
    for (const std::vector<Binding>& outer : turns) {
      for (std::vector<Binding> bindings : inner) {
        bindings.insert(bindings.begin(), outer.begin(), outer.end());
        const Scope scope{sizes, bindings};
        std::string hf = SW_TRY(rule.hf.hf.render(scope));
        std::vector<std::string> originals;
        for (const NameTemplate& name : rule.originals) {
          originals.push_back(SW_TRY(name.render(scope)));
        }
        // What all experts have is written for the first of them, and the others repeat it.
        if (std::ranges::find(originals, hf) != originals.end()) continue;
        std::string beside = rule.beside ? SW_TRY(rule.beside->render(scope)) : "";
        copies.push_back(
            CopyInstance{&rule, std::move(hf), std::move(originals), std::move(beside)});
      }
    }
  }
  return copies;
}

CopyIndex::CopyIndex(std::span<const CopyInstance> copies) {
  for (const CopyInstance& copy : copies) by_name_.emplace(copy.hf, &copy);
}

std::optional<std::string> CopyIndex::stored_original(
    const CopyInstance& copy, const std::function<bool(const std::string&)>& is_stored) const {
  std::set<std::string> seen{copy.hf};  // copies may name each other in a circle
  std::vector<std::string> names(copy.originals.rbegin(), copy.originals.rend());
  while (!names.empty()) {
    const std::string name = std::move(names.back());
    names.pop_back();
    if (!seen.insert(name).second) continue;
    const auto again = by_name_.find(name);
    if (again != by_name_.end()) {
      const std::vector<std::string>& originals = again->second->originals;
      names.insert(names.end(), originals.rbegin(), originals.rend());
    } else if (is_stored(name)) {
      return name;
    }
  }
  return std::nullopt;
}

Result<std::set<std::string, std::less<>>> ignored_names(const Mapping& mapping,
                                                         const ModelSizes& sizes) {
  std::set<std::string, std::less<>> names;
  for (const NameRule& rule : mapping.ignore) {
    const auto turns = SW_TRY(turns_of(mapping, sizes, rule.index));
    for (const std::vector<Binding>& bindings : turns) {
      names.insert(SW_TRY(rule.hf.render(Scope{sizes, bindings})));
    }
  }
  return names;
}

}  // namespace shardwright
