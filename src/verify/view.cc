// SPDX-License-Identifier: Apache-2.0
#include "verify/view.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "canonical/canonical_model.h"
#include "canonical/derived_states.h"
#include "canonical/families.h"
#include "canonical/hf_naming.h"
#include "canonical/mlite_naming.h"
#include "canonical/model_facts.h"
#include "canonical/tied_head.h"
#include "compare/recorded_optimizer.h"
#include "compare/replicas.h"
#include "compare/source_losses.h"
#include "compare/stored_states.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "format/adapter_note.h"
#include "format/flat_states.h"
#include "format/formats.h"
#include "format/nothing_stored.h"
#include "format/quantizer_values.h"
#include "io/source_files.h"
#include "layout/model_head.h"
#include "model/component_names.h"
#include "plan/wrong_states.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

std::set<std::string_view> names_of(const Catalog& catalog) {
  std::set<std::string_view> names;
  for (const StoredTensor& tensor : catalog.tensors) names.insert(tensor.desc.name);
  return names;
}

OutputHeads heads_of(const View& view) { return OutputHeads(descs_of(view.plan.target)); }

bool has_head_alone(const Checkpoint& checkpoint) {
  const std::vector<TensorDesc> descs = descs_of(checkpoint.catalog);
  return !checkpoint.hf_config.empty() && has_head_alone(checkpoint.hf_config, descs);
}

class Maker {
 public:
  Maker(Checkpoint checkpoint, Naming naming, const ProofOptions& options, const ViewUse& use)
      : options_(options), use_(use) {
    view_.checkpoint = std::move(checkpoint);
    view_.naming = naming;
  }

  Result<View> make() {
    SW_TRY(check_family_choice(options_.choice, view_.checkpoint));
    leave_quantizer_values_out(view_.checkpoint.catalog, view_.notes);
    for (const std::string& note : view_.checkpoint.location.notes) {
      view_.notes.push_back(translated("{}: {}", view_.checkpoint.location.path, note));
    }
    if (auto note = adapter_note(view_.checkpoint)) view_.notes.push_back(*std::move(note));
    SW_TRY(check_something_stored(catalog(), view_.checkpoint.location.path));
    if (const Status state = check_common_state(view_.checkpoint); !state) {
      view_.notes.push_back(view_.checkpoint.location.path + ": " + state.error().message);
    }
    SW_TRY(take_given_replica());
    SW_TRY(check_losses());
    SW_TRY(tell_wrong_stored_states());
    SW_TRY(locate_items(view_.checkpoint.catalog, *view_.checkpoint.files));
    SW_TRY(check_names_of_replicas());
    // States of files of ranks lie among the objects, those in flat buffers have no names yet.
    const bool gets_states =
        view_.checkpoint.location.traits.is_of_ranks || has_flat_states(catalog());
    if (!gets_states) SW_TRY(check_all_replicas());
    SW_TRY(put_in_order());
    const bool is_hf = view_.checkpoint.location.traits.is_hf_model;
    if (view_.naming == Naming::kStored) {
      tensors_ = draft_identity(catalog(), {});
    } else {
      SW_TRY(draft_canonical());
    }
    if (gets_states) SW_TRY(check_all_replicas());
    fill_plan();
    if (view_.naming == Naming::kCanonical) view_.stored_rows = vocabulary_height(view_);
    SW_TRY(check_given_rows());
    // All rows of a Hugging Face model are the model's, unless somebody says otherwise.
    const bool may_have_padding = !is_hf || options_.vocab_size;
    if (view_.naming == Naming::kCanonical && may_have_padding && !use_.keeps_padding) {
      cut_padding();
    }
    SW_TRY(check_plan(view_.plan));
    return std::move(view_);
  }

 private:
  [[nodiscard]] const Catalog& catalog() const { return view_.checkpoint.catalog; }

  // Digests and differences of a part would be taken for those of the whole.
  Status check_losses() {
    for (const std::string& loss : SW_TRY(losses_of(view_.checkpoint))) {
      if (!options_.source.accept_loss) {
        return fail(Code::kLossySource, "{}; --accept-loss takes what is there", loss);
      }
      view_.notes.push_back("--accept-loss: " + loss);
    }
    return {};
  }

  // What is there can be compared; that it is not all is said.
  Status tell_wrong_stored_states() {
    const Checkpoint& checkpoint = view_.checkpoint;
    const bool is_stored = view_.naming == Naming::kStored;
    if (!is_stored && !checkpoint.location.traits.is_hf_model) return {};
    if (has_unnamed_states(checkpoint, catalog())) return {};
    const StateFindings found = SW_TRY(find_wrong_stored_states(checkpoint, catalog()));
    for (const WrongState& state : found.wrong) {
      view_.notes.push_back(translated("{}: {}", checkpoint.location.path, state.what));
    }
    return {};
  }

  Status take_given_replica() {
    const std::optional<std::int64_t>& replica = options_.source.replica;
    if (!replica) return {};
    view_.notes.push_back(SW_TRY(take_replica(view_.checkpoint.catalog, *replica)));
    return {};
  }

  // Seen by their own names, copies that are not alike are tensors of their own.
  Status check_names_of_replicas() {
    Defects first;
    if (view_.naming == Naming::kCanonical && !view_.checkpoint.location.traits.is_hf_model) {
      SW_TRY(check_named_replicas(view_.checkpoint, catalog(), first));
    }
    return {};
  }

  Status check_all_replicas() {
    if (!use_.compares_replicas) return {};
    Defects first;
    SW_TRY(check_replicas(catalog(), ReplicaCheck::kAll, *view_.checkpoint.files, first,
                          workers_of(options_)));
    return {};
  }

  // MLite's experts and rows, whatever the sizes they were saved at. The caller's sizes may be
  // those of another checkpoint, with which this one is compared.
  Status put_in_order() {
    if (!view_.checkpoint.location.traits.has_local_numbers) return {};
    if (tells_sizes(options_.source)) {
      SourceOptions given = options_.source;
      given.accept_loss = false;
      view_.took_sizes = put_in_order(given).has_value();
      if (view_.took_sizes) return {};
    }
    SourceOptions own;
    own.accept_loss = options_.source.accept_loss;
    const Status status = put_in_order(own);
    if (status) return {};
    const bool is_needed = view_.naming == Naming::kCanonical;
    if (is_needed || status.error().code == Code::kLossySource) return status;
    view_.unordered = status.error();
    view_.notes.push_back(translated("tensors are taken as they are stored: ") +
                          status.error().message);
    return {};
  }

  Status put_in_order(const SourceOptions& options) {
    if (view_.naming == Naming::kCanonical) return name_as_megatron(options);
    view_.checkpoint.catalog =
        SW_TRY(form_of(view_.checkpoint).in_order(catalog(), options, view_.notes));
    return {};
  }

  Status name_as_megatron(const SourceOptions& options) {
    ConvertRequest request;
    static_cast<FamilyChoice&>(request) = options_.choice;
    static_cast<SourceOptions&>(request) = options;
    request.input = view_.checkpoint.location.path;
    Catalog wanted = catalog();
    SW_TRY(name_mlite_as_megatron(request, view_.checkpoint, wanted, view_.notes));
    view_.checkpoint.catalog = std::move(wanted);
    return {};
  }

  Status draft_canonical() {
    const bool has_components = has_component_names(catalog());
    SourceModel source;
    source.checkpoint = std::move(view_.checkpoint);
    source.states = use_.states;
    source.unfolds_convolutions = use_.unfolds_convolutions;
    source.reads_settings = use_.reads_settings;
    source.accepts_loss = options_.source.accept_loss;
    source.workers = workers_of(options_);
    CanonicalModel model = SW_TRY(canonical_model(std::move(source), options_.choice, view_.notes));
    view_.checkpoint = std::move(model.checkpoint);
    view_.plan.quantised = std::move(model.quantised);
    view_.plan.weighted = std::move(model.weighted);
    view_.family = std::move(model.family);
    view_.vocabulary = std::move(model.vocabulary);
    if (options_.vocab_size) view_.vocabulary.usual = options_.vocab_size;
    // What the run calls padding may be rows of the model that it is held against.
    const std::optional<std::int64_t>& other = options_.other_rows;
    const bool is_usual = other && (view_.vocabulary.usual.value_or(0) < *other ||
                                    (!options_.vocab_size && may_end_at(view_, *other)));
    if (is_usual) view_.vocabulary.usual = other;
    view_.has_states_by_tensor = model.has_states_by_tensor;
    view_.states_left = std::move(model.states_left);
    view_.settings_left = std::move(model.settings_left);
    tensors_ = std::move(model.tensors);
    if (!has_components) tell_wrong_states();
    return {};
  }

  void tell_wrong_states() {
    const Checkpoint& checkpoint = view_.checkpoint;
    if (checkpoint.location.traits.is_hf_model) return;  // told when it was opened
    const bool have_numbers = form_of(checkpoint).has_numbered_states(catalog());
    if (have_numbers || has_unnamed_states(checkpoint, catalog())) return;
    for (const WrongState& state :
         find_wrong_states(catalog(), recorded_optimizer(checkpoint)).wrong) {
      view_.notes.push_back(translated("{}: {}", checkpoint.location.path, state.what));
    }
  }

  void fill_plan() {
    view_.plan.source = std::move(view_.checkpoint.catalog);
    take_whole(std::move(tensors_), view_.plan);
  }

  [[nodiscard]] Status check_given_rows() const {
    if (!options_.vocab_size) return {};
    const std::string& path = view_.checkpoint.location.path;
    if (view_.naming == Naming::kStored) {
      return fail(Code::kUsage,
                  "{}: its tensors are taken as they are stored, and --vocab-size says nothing of "
                  "those; leave it out",
                  path);
    }
    if (view_.stored_rows == 0 || *options_.vocab_size <= view_.stored_rows) return {};
    return fail(Code::kUsage,
                "{}: found {} rows of the vocabulary, expected {} as --vocab-size says", path,
                view_.stored_rows, *options_.vocab_size);
  }

  void cut_padding() {
    if (view_.vocabulary.usual) {
      cut_vocabulary(view_, view_.vocabulary);
      return;
    }
    const OutputHeads heads = heads_of(view_);
    for (const StoredTensor& tensor : view_.plan.target.tensors) {
      if (!heads.has_vocabulary_rows(tensor.desc)) continue;
      view_.notes.push_back(
          translated("{}: vocabulary tensors are taken with all {} stored rows; --vocab-size "
                     "leaves padding out",
                     view_.checkpoint.location.path, tensor.desc.shape[0]));
      return;
    }
  }

  const ProofOptions& options_;
  const ViewUse& use_;
  View view_;
  std::vector<DraftTensor> tensors_;
};

}  // namespace

void take_whole(std::vector<DraftTensor> tensors, Plan& plan) {
  std::ranges::sort(tensors, {}, [](const DraftTensor& tensor) -> const std::string& {
    return tensor.desc.name;
  });
  for (DraftTensor& tensor : tensors) {
    ChunkList whole(tensor.desc.shape.size());
    whole.push_back({Box::whole(tensor.desc.shape), 0, {}, {}});
    plan.target.tensors.push_back({std::move(tensor.desc), std::move(whole), Encoding::kRaw});
    plan.tensors.push_back(std::move(tensor.recipe));
  }
}

std::int64_t vocabulary_height(const View& view) {
  const OutputHeads heads = heads_of(view);
  std::int64_t rows = 0;
  for (const StoredTensor& tensor : view.plan.target.tensors) {
    if (heads.has_vocabulary_rows(tensor.desc)) rows = std::max(rows, tensor.desc.shape[0]);
  }
  return rows;
}

bool may_end_at(const View& view, std::int64_t rows) {
  const auto told = open_vocabulary(view.checkpoint.arguments);
  return told && *told <= rows;
}

Naming natural_naming(const Checkpoint& checkpoint, const FamilyChoice& choice) {
  const bool is_told =
      checkpoint.location.traits.has_local_numbers && !choice.hf_config_dir.empty();
  return is_told || has_canonical_form(checkpoint) ? Naming::kCanonical : Naming::kStored;
}

bool compare_as_hf(const Checkpoint& left, const Checkpoint& right, const FamilyChoice& choice) {
  const SourceTraits& one = left.location.traits;
  const SourceTraits& other = right.location.traits;
  if (!one.is_hf_model || !other.is_hf_model) return false;
  const bool may_differ = one.records != Records::kNone || other.records != Records::kNone ||
                          may_have_other_names(left.catalog) ||
                          may_have_other_names(right.catalog) || has_head_alone(left) ||
                          has_head_alone(right);
  const bool is_told =
      !choice.hf_config_dir.empty() || (!left.hf_config.empty() && !right.hf_config.empty());
  if (!may_differ || !is_told) return true;
  return names_of(left.catalog) == names_of(right.catalog);
}

Result<View> make_view(Checkpoint checkpoint, Naming naming, const ProofOptions& options,
                       const ViewUse& use) {
  const std::string path = checkpoint.location.path;
  Result<View> view = Maker(std::move(checkpoint), naming, options, use).make();
  if (!view) return std::unexpected(std::move(view).error().within(path));
  return view;
}

void cut_vocabulary(View& view, const VocabularyRows& vocabulary) {
  const OutputHeads heads = heads_of(view);
  std::int64_t cut = 0;
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < view.plan.tensors.size(); ++i) {
    StoredTensor& tensor = view.plan.target.tensors[i];
    if (!heads.has_vocabulary_rows(tensor.desc)) continue;
    const std::optional<std::int64_t> rows = vocabulary.of(tensor.desc.name);
    if (!rows || tensor.desc.shape[0] <= *rows) continue;
    cut = tensor.desc.shape[0] - *rows;
    kept = *rows;
    DraftTensor draft{tensor.desc, std::move(view.plan.tensors[i]), std::nullopt};
    resize_rows(draft, kept);
    tensor.desc = std::move(draft.desc);
    tensor.chunks = ChunkList(tensor.desc.shape.size());
    tensor.chunks.push_back({Box::whole(tensor.desc.shape), 0, {}, {}});
    view.plan.tensors[i] = std::move(draft.recipe);
  }
  if (cut > 0) {
    view.notes.push_back(translated("{}: {} padding rows of the vocabulary are left out, {} count",
                                    view.checkpoint.location.path, cut, kept));
  }
}

}  // namespace shardwright
