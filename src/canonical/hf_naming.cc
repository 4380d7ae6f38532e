// SPDX-License-Identifier: Apache-2.0
#include "canonical/hf_naming.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/lone_head.h"
#include "canonical/renamed_catalog.h"
#include "canonical/tied_head.h"
#include "format/wrapped_base.h"
#include "layout/model_head.h"
#include "layout/module_wrappers.h"
#include "model/apply.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

std::string_view root_of(std::string_view name) { return name.substr(0, name.find('.')); }

// There may be a million.
Catalog without_chunks(const Catalog& catalog) {
  Catalog bare;
  for (const StoredTensor& tensor : catalog.tensors) {
    bare.tensors.push_back({tensor.desc, ChunkList(tensor.desc.shape.size())});
  }
  return bare;
}

}  // namespace

/// The ways in which names may be the family's, and how well each fits.
class NamingSearch {
 public:
  NamingSearch(const ModelFacts& facts, const Catalog& catalog) : facts_(facts), catalog_(catalog) {
    for (const StoredTensor& tensor : catalog.tensors) {
      names_.push_back(without_module_wrappers(tensor.desc.name));
    }
  }

  Result<HfNaming> run(const std::vector<NameRules>& all) {
    count_hf_names();
    for (const NameRules& rules : all) {
      if (std::ranges::find(rules.families, facts_.mapping->family) != rules.families.end()) {
        count_own_names(std::make_shared<NameRules>(rules));
      }
    }
    std::vector<HfNaming> whole;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates_) {
      HfNaming naming = naming_of(candidate);
      if (naming.fit_) whole.push_back(std::move(naming));
      if (best == nullptr || candidate.matched > best->matched) best = &candidate;
    }
    std::vector<HfNaming> apart;
    std::ranges::copy_if(whole, std::back_inserter(apart),
                         [&](const HfNaming& each) { return !is_inside_another(each, whole); });
    whole = std::move(apart);
    const auto is_in_state = [](const HfNaming& each) { return has_word(each.prefix_, "state"); };
    if (!std::ranges::all_of(whole, is_in_state)) std::erase_if(whole, is_in_state);
    if (whole.size() > 1) {
      return fail(Code::kTwoCheckpoints,
                  "a whole {} model lies under each of '{}' and '{}'; convert takes one of them by "
                  "--include '{}*'",
                  facts_.mapping->family, whole[0].prefix_, whole[1].prefix_, whole[0].prefix_);
    }
    if (!whole.empty()) return std::move(whole.front());
    if (best != nullptr) return naming_of(*best);
    HfNaming as_stored;
    as_stored.fit_ = fit_of(as_stored);
    return as_stored;
  }

  std::optional<HfNaming> run_as_stored() {
    HfNaming naming;
    naming.sizes_ = facts_.sizes;
    naming.fit_ = fit_of(naming);
    return naming.fit_ ? std::optional(std::move(naming)) : std::nullopt;
  }

  std::optional<HfNaming> run_bare() {
    collect_shapes(facts_.mapping->items);
    std::set<std::string> bases;
    for (const std::string& shape : shapes_) {
      const std::size_t dot = shape.find('.');
      if (dot != std::string::npos && shape.find('#') > dot) bases.insert(shape.substr(0, dot + 1));
    }
    for (const std::string& base : bases) {
      HfNaming naming;
      naming.missing_ = base;
      naming.sizes_ = facts_.sizes;
      for (const std::string& name : names_) {
        const bool is_whole = shapes_.contains(shape_of(name));
        if (!is_whole && shapes_.contains(shape_of(base + name))) {
          naming.roots_.emplace(root_of(name));
        }
      }
      naming.fit_ = fit_of(naming);
      if (!naming.roots_.empty() && naming.fit_) return naming;
    }
    return std::nullopt;
  }

 private:
  struct Candidate {
    std::string prefix;
    std::shared_ptr<const NameRules> rules;
    std::size_t matched = 0;
    std::set<std::string, std::less<>> roots;
  };

  // Numbers by one sign, whatever they count: what fits so is only tried.
  static std::string shape_of(std::string_view name) {
    std::string shape;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const bool is_open = name[i] == '{';
      if (!is_open && (name[i] < '0' || name[i] > '9')) {
        shape += name[i];
        continue;
      }
      if (!shape.ends_with('#')) shape += '#';
      if (is_open) i = std::min(name.find('}', i), name.size() - 1);
    }
    return shape;
  }

  void collect_shapes(const std::vector<Item>& items) {
    for (const Item& item : items) {
      if (const auto* rule = std::get_if<Rule>(&item.value)) {
        for (const NameTemplate& name : rule->hf) shapes_.insert(shape_of(name.text()));
      } else if (const auto* section = std::get_if<Section>(&item.value)) {
        collect_shapes(section->items);
      } else {
        for (const auto& option : std::get<Choice>(item.value).options) collect_shapes(option);
      }
    }
  }

  static bool has_word(std::string_view prefix, std::string_view word) {
    return ("." + std::string(prefix)).find(fmt::format(".{}.", word)) != std::string::npos;
  }

  // Optimizers that put the kind of a state first repeat the model's names behind it. What trainers
  // call the state of a whole run is none of them: `state.model.`.
  static bool is_of_states(std::string_view prefix) {
    constexpr std::array<std::string_view, 6> kStates = {
        "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "step", "param_groups"};
    return is_optimizer_name(std::string(prefix) + "weight") ||
           std::ranges::any_of(kStates,
                               [&](std::string_view state) { return has_word(prefix, state); });
  }

  void count_hf_names() {
    collect_shapes(facts_.mapping->items);
    for (const CopyRule& copy : facts_.mapping->copies) {
      shapes_.insert(shape_of(copy.hf.hf.text()));
    }
    for (const NameRule& name : facts_.mapping->ignore) shapes_.insert(shape_of(name.hf.text()));
    count(nullptr, [&](std::string_view rest) { return shapes_.contains(shape_of(rest)); });
    for (Candidate& candidate : candidates_) add_alike_roots(candidate);
  }

  // Parts that keep their names as they are (towers, voices) are the model's too, but say little of
  // where it begins.
  void add_alike_roots(Candidate& candidate) const {
    for (const std::string& name : names_) {
      if (!name.starts_with(candidate.prefix)) continue;
      const auto rest = std::string_view(name).substr(candidate.prefix.size());
      const auto begins_it = [&](const std::string& begin) { return rest.starts_with(begin); };
      const bool is_alike = std::ranges::any_of(facts_.mapping->alike, [&](const AlikePart& part) {
        return std::ranges::any_of(part.hf, begins_it);
      });
      if (is_alike) candidate.roots.emplace(root_of(rest));
    }
  }

  void count_own_names(const std::shared_ptr<const NameRules>& rules) {
    count(rules, [&](std::string_view rest) {
      return std::ranges::any_of(
          rules->rules, [&](const StoredNameRule& rule) { return rule.match(rest).has_value(); });
    });
  }

  template <class Fits>
  void count(const std::shared_ptr<const NameRules>& rules, const Fits& fits) {
    std::map<std::string, Candidate, std::less<>> by_prefix;
    for (const std::string& name : names_) {
      for (std::size_t at = 0; at < name.size();) {
        const std::string_view rest = std::string_view(name).substr(at);
        if (fits(rest)) {
          const std::string prefix = name.substr(0, at);
          Candidate& candidate = by_prefix[prefix];
          candidate.prefix = prefix;
          candidate.rules = rules;
          ++candidate.matched;
          candidate.roots.emplace(root_of(rest));
        }
        const std::size_t dot = name.find('.', at);
        at = dot == std::string::npos ? name.size() : dot + 1;
      }
    }
    for (auto& [prefix, candidate] : by_prefix) {
      if (!is_of_states(prefix)) candidates_.push_back(std::move(candidate));
    }
  }

  // A family that knows its names with and without a first word (GPT-2's `transformer.`) finds one
  // model twice: with that word it has all of it.
  static bool is_inside_another(const HfNaming& inner, std::span<const HfNaming> all) {
    return std::ranges::any_of(all, [&](const HfNaming& outer) {
      if (inner.prefix_.size() <= outer.prefix_.size()) return false;
      if (!inner.prefix_.starts_with(outer.prefix_)) return false;
      const auto rest = std::string_view(inner.prefix_).substr(outer.prefix_.size());
      return outer.roots_.contains(root_of(rest));
    });
  }

  // Heads for rewards, values and classes are no family's; trl's wrapper has its own beside the
  // model that it wraps.
  void add_heads(HfNaming& naming) const {
    for (const std::string& name : names_) {
      const bool is_inside = name.starts_with(naming.prefix_);
      const auto rest = std::string_view(name).substr(is_inside ? naming.prefix_.size() : 0);
      if (!is_in_head(rest)) continue;
      (is_inside ? naming.roots_ : naming.roots_beside_).emplace(root_of(rest));
    }
    std::erase_if(naming.roots_beside_,
                  [&](const std::string& root) { return naming.roots_.contains(root); });
  }

  HfNaming naming_of(const Candidate& candidate) const {
    HfNaming naming;
    naming.prefix_ = candidate.prefix;
    naming.rules_ = candidate.rules;
    naming.roots_ = candidate.roots;
    add_heads(naming);
    naming.sizes_ = facts_.sizes;
    naming.takes_all_ = false;
    naming.fit_ = fit_of(naming);
    return naming;
  }

  // Every tensor must have its place in the family's model, and every place its tensor.
  [[nodiscard]] Status fit_of(const HfNaming& naming) const {
    Notes unused;
    const Catalog named =
        SW_TRY(naming.apply(without_chunks(catalog_), OtherTensors::kLeftOut, unused));
    const ModelTensors model = SW_TRY(model_tensors(named, facts_.config_text, nullptr));
    SW_TRY(map_from_hf(*facts_.mapping, facts_.sizes, model.tensors));
    return {};
  }

  const ModelFacts& facts_;
  const Catalog& catalog_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> shapes_;
  std::vector<Candidate> candidates_;
};

Result<HfNaming> HfNaming::find(const ModelFacts& facts, const Catalog& catalog) {
  const std::vector<NameRules> rules = SW_TRY(built_in_name_rules());
  return NamingSearch(facts, catalog).run(rules);
}

std::optional<HfNaming> HfNaming::find_bare(const ModelFacts& facts, const Catalog& catalog) {
  return NamingSearch(facts, catalog).run_bare();
}

std::optional<HfNaming> HfNaming::find_as_stored(const ModelFacts& facts, const Catalog& catalog) {
  return NamingSearch(facts, catalog).run_as_stored();
}

Error HfNaming::error() const {
  Error error = fit_.error();
  if (!are_own()) return error;
  error.message +=
      translated("; names are taken for those of {} ({})", rules_->writers, rules_->names);
  return error;
}

Result<Catalog> HfNaming::apply(const Catalog& catalog, OtherTensors others, Notes& notes) const {
  RenamedCatalog renamed(catalog, sizes_);
  std::vector<std::string> left_out;
  bool moves_rows = false;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string name = without_module_wrappers(tensor.desc.name);
    if (takes_all_) {
      const bool is_bare = !missing_.empty() && roots_.contains(root_of(name));
      SW_TRY(renamed.add(tensor, is_bare ? missing_ + name : name));
      continue;
    }
    if (roots_beside_.contains(root_of(name))) {
      SW_TRY(renamed.add(tensor, name));
      continue;
    }
    const std::string_view rest =
        name.starts_with(prefix_) ? std::string_view(name).substr(prefix_.size()) : "";
    const bool is_ignored = rules_ != nullptr && rules_->ignores(rest);
    if (is_ignored || rest.empty() || !roots_.contains(root_of(rest))) {
      if (others == OtherTensors::kKept && prefix_.empty() && rules_ == nullptr) {
        SW_TRY(renamed.add(tensor, name));
      } else {
        left_out.push_back(tensor.desc.name);
      }
      continue;
    }
    const StoredNameRule* found = nullptr;
    std::optional<std::vector<Binding>> numbers;
    if (rules_ != nullptr) {
      for (const StoredNameRule& rule : rules_->rules) {
        if (found == nullptr && (numbers = rule.match(rest))) found = &rule;
      }
    }
    if (found == nullptr) {
      SW_TRY(renamed.add(tensor, std::string(rest)));
      continue;
    }
    moves_rows |= found->has_rotary_pairs;
    SW_TRY(renamed.add(tensor, *found, *std::move(numbers)));
  }
  if (!missing_.empty()) {
    notes.push_back(translated("names lack '{}', which is put before them", missing_));
  }
  if (!prefix_.empty()) {
    notes.push_back(translated("names are taken without '{}', which stands before them", prefix_));
  }
  if (rules_ != nullptr) {
    notes.push_back(translated(
        "names are those of {} ({}) and become Hugging Face's{}", rules_->writers, rules_->names,
        moves_rows ? "; rows of q and k are put in Hugging Face's order" : ""));
  }
  if (!left_out.empty()) {
    notes.push_back(translated("{} tensors beside the model's are left out: {}", left_out.size(),
                               name_list(left_out)));
  }
  return renamed.take();
}

namespace {

// Where a family may have `model.`.
bool may_be_bare(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    constexpr std::array<std::string_view, 3> kLayers = {"layers.", "h.", "blocks."};
    const auto is_named = [&](std::string_view layers) {
      return tensor.desc.name.starts_with(layers);
    };
    return std::ranges::any_of(kLayers, is_named);
  });
}

// What wrappers leave in names that are otherwise Hugging Face's.
bool may_be_wrapped(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    constexpr std::array<std::string_view, 2> kWrapped = {"module.", "base_model.model."};
    const std::string& name = tensor.desc.name;
    const auto begins_it = [&](std::string_view begin) { return name.starts_with(begin); };
    return has_module_wrapper(name) || std::ranges::any_of(kWrapped, begins_it);
  });
}

// `XModel` is what transformers calls a model without a head.
bool is_of_base_class(const ModelFacts& facts) {
  return facts.config && !facts.config->architectures.empty() &&
         facts.config->architectures.front().ends_with("Model");
}

// A head's bias, which nothing that is stored can stand for.
void add_head_bias(const TiedHead& head, Catalog& catalog) {
  const auto weight = std::ranges::find_if(catalog.tensors, [&](const StoredTensor& tensor) {
    return tensor.desc.name == head.head && !tensor.desc.shape.empty();
  });
  if (weight == catalog.tensors.end()) return;
  TensorDesc bias = weight->desc;
  bias.name = head.head.substr(0, head.head.rfind('.')) + ".bias";
  bias.shape = Dims{weight->desc.shape[0]};
  catalog.tensors.push_back({std::move(bias), ChunkList(1)});
}

// A model saved without its head, as one that gives embeddings is, shows it only by names that lack
// their first word, or by its class where the family's names have no such word. A language model of
// the family has a head; where that has a bias too, it stays missing.
std::optional<HfNaming> find_without_head(const ModelFacts& facts, const Catalog& catalog,
                                          std::initializer_list<Catalog*> catalogs, Notes& notes) {
  const auto head = missing_head(descs_of(catalog));
  if (!head) return std::nullopt;
  Catalog whole = without_chunks(catalog);
  add_tied_head(*head, whole);
  std::optional<HfNaming> bare = HfNaming::find_bare(facts, whole);
  if (!bare && is_of_base_class(facts) && !HfNaming::find_as_stored(facts, catalog)) {
    bare = HfNaming::find_as_stored(facts, whole);
  }
  if (!bare) {
    add_head_bias(*head, whole);
    bare = HfNaming::find_bare(facts, whole);
  }
  if (!bare) return std::nullopt;
  for (Catalog* each : catalogs) add_tied_head(*head, *each);
  notes.push_back(
      translated("no tensor is the output layer, as in a model that gives embeddings: {} is taken "
                 "for it",
                 head->embedding));
  return bare;
}

Status rename(const HfNaming& naming, std::initializer_list<Catalog*> catalogs, OtherTensors others,
              Notes& notes) {
  const auto wrapped = std::ranges::find_if(
      (*catalogs.begin())->tensors,
      [](const StoredTensor& tensor) { return has_module_wrapper(tensor.desc.name); });
  if (wrapped != (*catalogs.begin())->tensors.end()) {
    notes.push_back(
        translated("names are taken without what FSDP and torch.compile put into them: {}",
                   printable(wrapped->desc.name)));
  }
  Notes again;  // of the catalogs behind the first
  Notes* told = &notes;
  for (Catalog* catalog : catalogs) {
    *catalog = SW_TRY(naming.apply(*catalog, others, *told));
    told = &again;
  }
  return {};
}

// Where names may lack the model's part: whether the model got a head; nullopt where they stay.
Result<std::optional<bool>> name_bare(const ModelFacts& facts, const Catalog& catalog,
                                      std::initializer_list<Catalog*> catalogs, Notes& notes) {
  if (!may_be_bare(catalog)) return std::nullopt;
  std::optional<HfNaming> bare = HfNaming::find_bare(facts, catalog);
  const bool gets_head = !bare;
  if (!bare) bare = find_without_head(facts, catalog, catalogs, notes);
  if (!bare) return std::nullopt;
  SW_TRY(rename(*bare, catalogs, OtherTensors::kKept, notes));
  return gets_head;
}

}  // namespace

bool may_have_other_names(const Catalog& catalog) {
  return may_be_bare(catalog) || may_be_wrapped(catalog);
}

Result<bool> name_as_hf(const FamilyChoice& choice, const Checkpoint& checkpoint,
                        std::initializer_list<Catalog*> catalogs, Notes& notes) {
  const SourceTraits& traits = checkpoint.location.traits;
  if (!traits.is_hf_model) return false;
  // Of what PEFT wrapped the base is the model; whoever opens it tells of the adapter.
  for (Catalog* catalog : catalogs) take_adapters_of_wrapped(*catalog);
  SW_TRY(name_lone_head(choice, checkpoint, catalogs, notes));
  const bool is_plain = traits.records == Records::kNone;
  const bool may_differ = may_be_bare(checkpoint.catalog) || may_be_wrapped(**catalogs.begin());
  if (is_plain && !may_differ) return false;
  const Mappings mappings = SW_TRY(load_mappings(choice, checkpoint));
  Notes told_later;
  const auto facts = find_model_facts(choice, checkpoint, mappings, {}, told_later);
  if (!facts && traits.is_named_by_family) return std::unexpected(facts.error());
  if (!facts) return false;
  if (is_plain) {
    const auto got_head = SW_TRY(name_bare(*facts, checkpoint.catalog, catalogs, notes));
    if (got_head) return *got_head;
  }
  HfNaming naming = SW_TRY(HfNaming::find(*facts, **catalogs.begin()));
  // What is wanted may be a part of the model, which has the names of all of it.
  if (!naming.fit()) {
    HfNaming of_all = SW_TRY(HfNaming::find(*facts, checkpoint.catalog));
    if (of_all.fit()) naming = std::move(of_all);
  }
  if (!naming.fit()) {
    std::optional<bool> got_head;
    if (!is_plain) got_head = SW_TRY(name_bare(*facts, checkpoint.catalog, catalogs, notes));
    if (got_head) return *got_head;
    const bool may_stay = !traits.is_named_by_family && !naming.are_own();
    if (may_stay) return false;
    return std::unexpected(naming.error());
  }
  // Files of a model's weights hold what is of the model: its buffers too. A job's hold anything.
  const OtherTensors others =
      traits.is_named_by_family ? OtherTensors::kLeftOut : OtherTensors::kKept;
  SW_TRY(rename(naming, catalogs, others, notes));
  return false;
}

}  // namespace shardwright
