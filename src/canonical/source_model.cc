// SPDX-License-Identifier: Apache-2.0
#include "canonical/source_model.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "canonical/derived_states.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "compare/master_form.h"
#include "compare/master_weights.h"
#include "format/flat_states.h"
#include "format/formats.h"
#include "plan/canonical.h"
#include "state/component_groups.h"

namespace shardwright {
namespace {

Status prove_states(const SourceModel& source) {
  const Checkpoint& checkpoint = source.checkpoint;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) SW_TRY(check_coverage(tensor));
  const MasterForm form =
      SW_TRY(form_of_masters(checkpoint.arguments, checkpoint.catalog, *checkpoint.files));
  if (form != MasterForm::kRounded) return {};
  Defects first;
  return check_master_weights(checkpoint.catalog, *checkpoint.files, first, source.workers);
}

// The states of a checkpoint, tried on a copy of its catalog: half of them would be none.
class States {
 public:
  explicit States(SourceModel& source)
      : source_(source),
        stored_(source.checkpoint.catalog),
        was_unread_(source.checkpoint.has_unread_optimizer) {}

  Status run() {
    Defects unsound(Defects::Policy::kCollect);
    SW_TRY(unsound.report(derive()));
    if (unsound.found().empty() && is_derived_) SW_TRY(unsound.report(prove_states(source_)));
    if (unsound.found().empty()) return {};
    source_.states_left = unsound.found().front().message;
    source_.checkpoint.catalog = std::move(stored_);
    source_.checkpoint.has_unread_optimizer = was_unread_;
    return {};
  }

 private:
  Status derive() {
    Checkpoint& checkpoint = source_.checkpoint;
    Defects first;
    is_derived_ = SW_TRY(read_states(checkpoint, first));
    if (!has_unnamed_states(checkpoint, checkpoint.catalog)) return {};
    Catalog named = checkpoint.catalog;
    SW_TRY(name_states(checkpoint, named));
    checkpoint.catalog = std::move(named);
    is_derived_ = true;
    return {};
  }

  SourceModel& source_;
  Catalog stored_;
  bool was_unread_;
  bool is_derived_ = false;
};

bool is_of_optimizer(const StoredTensor& tensor) { return is_optimizer_name(tensor.desc.name); }

// Names that rules gave to states with numbers: they stay where they are wanted and proven.
Status keep_proven(SourceModel& source, const Catalog& stored) {
  Catalog& named = source.checkpoint.catalog;
  if (source.states == StateUse::kByTensor && std::ranges::any_of(named.tensors, is_of_optimizer)) {
    Defects unsound(Defects::Policy::kCollect);
    SW_TRY(unsound.report(prove_states(source)));
    if (unsound.found().empty()) return {};
    source.states_left = unsound.found().front().message;
  }
  std::erase_if(named.tensors, is_of_optimizer);
  std::ranges::copy_if(stored.tensors, std::back_inserter(named.tensors), is_of_optimizer);
  return {};
}

// The settings of training that entries of their own hold, as a common state has them.
Result<std::string> settings_of(const Checkpoint& checkpoint, Notes& notes) {
  if (checkpoint.location.traits.has_state_entries) {
    return form_of(checkpoint).common_state(checkpoint, notes);
  }
  return join_component_groups(checkpoint.common_state, checkpoint.catalog, *checkpoint.files);
}

// Why they cannot be read; empty where they can.
std::string read_settings(Checkpoint& checkpoint, Notes& notes) {
  const bool has_any =
      checkpoint.location.traits.has_state_entries || !checkpoint.common_state.empty();
  if (!has_any) return {};
  Result<std::string> settings = settings_of(checkpoint, notes);
  if (settings) {
    checkpoint.common_state = *std::move(settings);
    return {};
  }
  checkpoint.common_state.clear();
  notes.push_back(translated("{}: its settings of training are not compared: {}",
                             checkpoint.location.path, settings.error().message));
  return settings.error().message;
}

// Whether the run's arguments and the tensors, named by one family's routes, are a known model, or
// one but for what was lost of it.
enum class ComponentFit : std::uint8_t { kNone, kNear, kWhole };

ComponentFit fit_of(const Mapping& routes, const Checkpoint& source,
                    std::span<const Mapping> mappings, const Arguments& arguments) {
  Catalog named = source.catalog;
  if (!to_standard_names(routes.components, named)) return ComponentFit::kNone;
  const auto canonical = canonical_descs(named);
  if (!canonical) return ComponentFit::kNone;
  const auto family = find_family(mappings, arguments, *canonical);
  const Code code = family ? Code::kAmbiguousFamily : family.error().code;
  if (code == Code::kAmbiguousFamily) return ComponentFit::kWhole;
  return code == Code::kNoFamily ? ComponentFit::kNone : ComponentFit::kNear;
}

// Of families whose components lie in the same places, the one whose rules the named tensors fit.
Result<const Mapping*> family_of_components(const Checkpoint& source,
                                            std::span<const Mapping> mappings,
                                            const std::vector<const Mapping*>& families) {
  if (families.size() == 1) return families.front();
  const Arguments arguments = SW_TRY(run_arguments(source));
  std::map<ComponentFit, std::vector<const Mapping*>> by_fit;
  for (const Mapping* family : families) {
    by_fit[fit_of(*family, source, mappings, arguments)].push_back(family);
  }
  for (const ComponentFit fit : {ComponentFit::kWhole, ComponentFit::kNear}) {
    if (by_fit[fit].size() == 1) return by_fit[fit].front();
    if (!by_fit[fit].empty()) break;
  }
  return fail(Code::kAmbiguousFamily,
              "family: the components may be those of {} or of {}, and the training arguments "
              "don't tell which; name it with --family, or give config.json with --hf-config",
              families[0]->family, families[1]->family);
}

}  // namespace

bool is_disguised(const Checkpoint& checkpoint) {
  return checkpoint.location.traits.has_module_pieces || has_component_names(checkpoint.catalog);
}

Result<Wrappers> name_components(const FamilyChoice& choice, const Checkpoint& source,
                                 std::span<const Mapping> mappings, Catalog& catalog) {
  const std::string family = SW_TRY(told_family(choice, source));
  const std::vector<const Mapping*> families =
      SW_TRY(families_with_routes(mappings, family, catalog));
  if (families.empty()) return Wrappers();
  const Mapping& chosen = *SW_TRY(family_of_components(source, mappings, families));
  return to_standard_names(chosen.components, catalog);
}

Result<Catalog> megatron_catalog(const Checkpoint& checkpoint, const FamilyChoice& choice,
                                 Wrappers& wrappers, Notes& notes, bool accepts_loss) {
  if (checkpoint.location.traits.has_module_pieces) {
    return form_of(checkpoint).megatron_catalog(checkpoint, accepts_loss, notes);
  }
  if (!has_component_names(checkpoint.catalog)) return checkpoint.catalog;
  const Mappings mappings = SW_TRY(load_mappings(choice, checkpoint));
  Catalog named = checkpoint.catalog;
  wrappers = SW_TRY(name_components(choice, checkpoint, mappings, named));
  return named;
}

Status to_megatron(SourceModel& source, const FamilyChoice& choice, Notes& notes) {
  const bool is_of_components = has_component_names(source.checkpoint.catalog);
  const bool has_states_by_tensor = source.checkpoint.location.traits.has_module_pieces;
  if (is_disguised(source.checkpoint)) {
    if (source.reads_settings) source.settings_left = read_settings(source.checkpoint, notes);
    Catalog named = SW_TRY(
        megatron_catalog(source.checkpoint, choice, source.wrappers, notes, source.accepts_loss));
    const Catalog stored = std::exchange(source.checkpoint.catalog, std::move(named));
    if (form_of(source.checkpoint).has_numbered_states(stored)) return keep_proven(source, stored);
  }
  if (source.states == StateUse::kAsStored || has_states_by_tensor) return {};
  if (is_of_components) {
    if (has_flat_states(source.checkpoint.catalog)) {
      source.states_left = "they are in flat buffers of a MIMO model's components";
    }
    return {};
  }
  return States(source).run();
}

}  // namespace shardwright
