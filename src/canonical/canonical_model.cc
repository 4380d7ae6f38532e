// SPDX-License-Identifier: Apache-2.0
#include "canonical/canonical_model.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "canonical/families.h"
#include "canonical/hf_model.h"
#include "canonical/hf_naming.h"
#include "canonical/joined_masters.h"
#include "canonical/stored_gates.h"
#include "canonical/unfold.h"
#include "compare/master_form.h"
#include "format/wrapped_base.h"
#include "layout/piece_limit.h"
#include "layout/state_name.h"
#include "model/apply.h"
#include "model/first_names.h"
#include "plan/canonical.h"
#include "plan/gate_rows.h"

namespace shardwright {
namespace {

class Making {
 public:
  Making(SourceModel source, const FamilyChoice& choice, Notes& notes)
      : source_(std::move(source)), choice_(choice), notes_(notes) {}

  Result<CanonicalModel> run() {
    if (source_.checkpoint.location.traits.is_hf_model) {
      SW_TRY(take_hf());
    } else {
      SW_TRY(take_megatron());
    }
    name_for_family();
    name_for_spec(ModuleSpec::kTransformerEngine, model_.tensors);
    model_.states_left = std::move(source_.states_left);
    model_.settings_left = std::move(source_.settings_left);
    model_.checkpoint = std::move(source_.checkpoint);
    return std::move(model_);
  }

 private:
  [[nodiscard]] Catalog& catalog() { return source_.checkpoint.catalog; }
  [[nodiscard]] SourceFiles& files() { return *source_.checkpoint.files; }

  Status take_hf() {
    std::vector<StoredTensor> adapters = take_adapters_of_wrapped(catalog());
    SW_TRY(name_as_hf(choice_, source_.checkpoint, {&catalog()}, notes_));
    const Mappings mappings = SW_TRY(load_mappings(choice_, source_.checkpoint));
    const ModelFacts facts =
        SW_TRY(find_model_facts(choice_, source_.checkpoint, mappings, {}, notes_));
    model_.family = facts.mapping->family;
    model_.tensors = SW_TRY(draft_hf_model(facts, {{std::nullopt, LayerKeys::kAllNumbered}},
                                           catalog(), files(), model_.quantised, notes_));
    // The tables' own rows, whatever config.json says.
    auto& [usual, beyond] = model_.vocabulary;
    for (const DraftTensor& tensor : model_.tensors) {
      if (tensor.true_rows) usual = std::min(usual.value_or(*tensor.true_rows), *tensor.true_rows);
    }
    for (const DraftTensor& tensor : model_.tensors) {
      if (!tensor.true_rows || *tensor.true_rows == *usual) continue;
      beyond.emplace(tensor.desc.name, *tensor.true_rows - *usual);
    }
    // Two models with one base are not the same: an adapter beside it counts as it is stored.
    for (StoredTensor& adapter : adapters) {
      const CanonicalTensor tensor{adapter.desc,
                                   static_cast<std::uint32_t>(catalog().tensors.size()), -1};
      catalog().tensors.push_back(std::move(adapter));
      model_.tensors.push_back(
          {tensor.desc, {{view_of_canonical(tensor)}, std::nullopt, 0.0}, std::nullopt});
    }
    return {};
  }

  Status take_megatron() {
    SW_TRY(to_megatron(source_, choice_, notes_));
    SW_TRY(check_piece_count(descs_of(catalog())));
    SW_TRY(use_family());
    for (const CanonicalTensor& tensor : tensors_and_states()) {
      model_.tensors.push_back(
          {tensor.desc, {{view_of_canonical(tensor)}, std::nullopt, 0.0}, std::nullopt});
    }
    const StoredGates gates = SW_TRY(stored_gates(source_.checkpoint));
    SW_TRY(move_gates(catalog(), gates, {}, model_.tensors));
    return source_.states == StateUse::kByTensor ? join_halves() : Status();
  }

  // Master weights are the same numbers however a run stores them.
  Status join_halves() {
    const MasterForm form =
        SW_TRY(form_of_masters(source_.checkpoint.arguments, catalog(), files()));
    if (form != MasterForm::kRemainders) return {};
    const auto repeat = [&](std::uint32_t number) {
      StoredTensor copy = catalog().tensors[number];
      catalog().tensors.push_back(std::move(copy));
      return static_cast<std::uint32_t>(catalog().tensors.size() - 1);
    };
    SW_TRY(join_masters({catalog(), model_.tensors, model_.weighted, repeat}));
    return {};
  }

  // Where the family is known its config tells the vocabulary; else the arguments do.
  Status use_family() {
    const auto mappings = load_mappings(choice_, source_.checkpoint);
    if (!mappings) return {};
    Notes unused;
    const std::vector<TensorDesc> descs = SW_TRY(canonical_descs(catalog()));
    const auto facts = find_model_facts(choice_, source_.checkpoint, *mappings, descs, unused);
    if (!facts) {
      model_.vocabulary.usual = true_vocabulary(source_.checkpoint.arguments);
      return {};
    }
    model_.family = facts->mapping->family;
    // Tensors that don't make a model of the family are compared all the same.
    auto rows = vocabulary_rows(*facts->mapping, facts->sizes, descs);
    if (rows) model_.vocabulary = *std::move(rows);
    if (!model_.vocabulary.usual) {
      model_.vocabulary.usual = true_vocabulary(source_.checkpoint.arguments);
    }
    // A model that lacks a part of the family's has no one choice of its rules.
    if (auto names = first_names(*facts->mapping, facts->sizes, descs)) first_ = *std::move(names);
    if (!source_.unfolds_convolutions) return {};
    // Of a model that lacks a part of the family's, what is there is as it is stored.
    const Status unfolded = unfold_convolutions(*facts, catalog());
    if (!unfolded) notes_.push_back(unfolded.error().message);
    return {};
  }

  // What modules of another spec are called depends on the family: a rule lists all names.
  void name_for_family() {
    for (DraftTensor& tensor : model_.tensors) {
      const std::string& name = tensor.desc.name;
      const std::optional<StateName> state = split_state_name(name);
      const std::string_view own = state ? state->tensor : std::string_view(name);
      const auto first = first_.find(own);
      if (first == first_.end()) continue;
      tensor.desc.name = name.substr(0, name.size() - own.size()) + first->second;
    }
  }

  // States that have their tensor's shape are taken apart as it is; others (buckets, flattened
  // ones) stay what they are.
  std::vector<CanonicalTensor> tensors_and_states() {
    std::unordered_map<std::string_view, const TensorDesc*> by_name;
    for (const StoredTensor& tensor : catalog().tensors) {
      by_name.emplace(tensor.desc.name, &tensor.desc);
    }
    std::vector<CanonicalTensor> tensors;
    for (std::uint32_t i = 0; i < catalog().tensors.size(); ++i) {
      const TensorDesc& desc = catalog().tensors[i].desc;
      if (!is_optimizer_name(desc.name)) {
        append_canonical(catalog(), i, desc.name, tensors);
        continue;
      }
      const std::optional<StateName> state = split_state_name(desc.name);
      const auto tensor = by_name.find(state ? state->tensor : std::string_view());
      if (tensor != by_name.end() && tensor->second->shape == desc.shape) {
        append_canonical(catalog(), i, name_of_state(*state), tensors);
      } else {
        tensors.push_back({desc, i, -1});
        model_.has_states_by_tensor = false;
      }
    }
    return tensors;
  }

  // A chained optimizer numbers its parts, which differ between layouts, and optimizers call their
  // master weights by two names.
  [[nodiscard]] std::string name_of_state(const StateName& state) const {
    return source_.states == StateUse::kByTensor ? join_state_name(state.kind, state.tensor)
                                                 : std::string(state.bare);
  }

  SourceModel source_;
  const FamilyChoice& choice_;
  Notes& notes_;
  CanonicalModel model_;
  FirstNames first_;
};

}  // namespace

bool has_canonical_form(const Checkpoint& checkpoint) {
  return checkpoint.location.traits.is_hf_model || is_disguised(checkpoint) ||
         has_megatron_names(checkpoint.catalog);
}

bool is_beside_the_model(std::string_view name) {
  return is_optimizer_name(name) || name.starts_with(kHfExtraPrefix);
}

Result<CanonicalModel> canonical_model(SourceModel source, const FamilyChoice& choice,
                                       Notes& notes) {
  return Making(std::move(source), choice, notes).run();
}

}  // namespace shardwright
