// SPDX-License-Identifier: Apache-2.0
#include "convert/conversion_source.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/fail.h"
#include "canonical/derived_states.h"
#include "canonical/families.h"
#include "canonical/hf_naming.h"
#include "canonical/mlite_naming.h"
#include "canonical/prediction_source.h"
#include "canonical/source_model.h"
#include "compare/master_weights.h"
#include "compare/replicas.h"
#include "compare/source_losses.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "format/component_optimizers.h"
#include "format/formats.h"
#include "format/nothing_stored.h"
#include "format/select.h"
#include "format/targets.h"
#include "format/wrapped_base.h"
#include "layout/mlite_layout.h"
#include "plan/canonical.h"
#include "plan/wrong_states.h"
#include "state/lost_settings.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

std::unexpected<Error> refuse_flat_states(std::string_view path) {
  return fail(Code::kOptimizerUnsupported,
              "{}: found flat optimizer states in a MIMO model, expected states in the shapes of "
              "the model's tensors; convert without them (--optimizer drop)",
              path);
}

class Opening {
 public:
  Opening(ConvertRequest& request, bool is_only, Notes& notes)
      : request_(request), is_only_(is_only), notes_(notes) {}

  Result<ConversionSource> run() {
    source_.checkpoint = SW_TRY(open_checkpoint(request_.input, FormatChoice{request_.as}));
    for (const std::string& note : checkpoint().notes) notes_.push_back(note);
    if (request_.replica) {
      notes_.push_back(SW_TRY(take_replica(source_.checkpoint.catalog, *request_.replica)));
    }
    SW_TRY(check_sizes());
    SW_TRY(check_optimizer());
    SW_TRY(check_weights());
    SW_TRY(undo_components());
    SW_TRY(leave_states_of_hf());
    SW_TRY(check_prediction_source(request_, checkpoint().location.traits.is_hf_model));
    SW_TRY(read_optimizer());
    if (is_only_) SW_TRY(check_patterns(std::array{&checkpoint().catalog}, request_));
    source_.wanted = SW_TRY(select_entries(checkpoint().catalog, request_, notes_));
    if (source_.wanted.tensors.empty()) {
      const std::string alone = note_on_states_alone(checkpoint());
      if (alone.empty()) {
        return fail(Code::kUsage, "{}: nothing is left to convert", request_.input);
      }
      return fail(Code::kNothingStored, "{}: {}", request_.input, alone);
    }
    Defects first;
    SW_TRY(check_named_replicas(checkpoint(), source_.wanted, first));
    SW_TRY(check_losses(request_, checkpoint(), source_.wanted, notes_));
    for (std::string& note : SW_TRY(locate_items(source_.wanted, *checkpoint().files))) {
      notes_.push_back(std::move(note));
    }
    if (!keeps_names(request_)) {
      SW_TRY(check_wrapped());
      SW_TRY(name_as_hf());
    }
    SW_TRY(name_mlite());
    const bool has_main_weights = checkpoint().location.traits.weights_are_main;
    if (!has_main_weights) SW_TRY(undo_pieces());
    SW_TRY(undo_flat());
    SW_TRY(find_master_form());
    SW_TRY(tell_proof());
    // Main weights are made of the weights, and are no proof of whose states are.
    if (has_main_weights) SW_TRY(undo_pieces());
    SW_TRY(check_states());
    return std::move(source_);
  }

 private:
  [[nodiscard]] const Checkpoint& checkpoint() const { return source_.checkpoint; }

  // Sizes of a source that nothing asks for would be believed to have counted.
  [[nodiscard]] Status check_sizes() const {
    if (!tells_sizes(request_) || has_mlite_names(checkpoint().catalog)) return {};
    return refuse_sizes(request_.input);
  }

  // What has no head is no language model's, and stays as it is where no Megatron model is made.
  Status name_as_hf() {
    const bool keeps_form = traits_of(request_.format).names == TargetNames::kHf;
    Catalog stored;
    if (keeps_form) stored = source_.wanted;
    Notes told;
    const bool got_head = SW_TRY(shardwright::name_as_hf(
        request_, checkpoint(), {&source_.wanted, &source_.checkpoint.catalog}, told));
    if (got_head && keeps_form) {
      source_.wanted = std::move(stored);
    } else {
      std::ranges::move(told, std::back_inserter(notes_));
    }
    return {};
  }

  // What was trained is the base and the adapter together: neither goes without a word.
  [[nodiscard]] Status check_wrapped() const {
    if (!checkpoint().location.traits.is_hf_model || !request_.adapter.empty()) return {};
    const std::vector<std::string> adapters = adapters_of_wrapped(source_.wanted);
    if (adapters.empty()) return {};
    return fail(Code::kUsage,
                "{}: {} tensors are an adapter's ({} the first), beside the base model that it was "
                "trained with; '{}' makes the trained model of both, {} converts the base alone",
                request_.input, adapters.size(), adapters.front(),
                merge_command_of_wrapped(checkpoint()), flags_without(adapters));
  }

  // --optimizer keep must never drop states silently.
  [[nodiscard]] Status check_optimizer() const {
    const std::string& file = checkpoint().unread_optimizer_file;
    if (file.empty() || request_.optimizer != OptimizerPolicy::kKeep) return {};
    return fail(Code::kOptimizerUnsupported,
                "{}: no rule says whose the optimizer states in {} are, and they are not "
                "converted; leave --optimizer keep out",
                request_.input, file);
  }

  // States without a model convert only to targets that keep stored names.
  [[nodiscard]] Status check_weights() const {
    const std::string alone =
        keeps_names(request_) ? std::string() : note_on_states_alone(checkpoint());
    if (alone.empty()) return {};
    return fail(Code::kNothingStored, "{}: {}", request_.input, alone);
  }

  // Everything in between works on an ordinary Megatron model: names of a MIMO source become that
  // model's, and the names of a MIMO target are given when its tensors are placed.
  Status undo_components() {
    Checkpoint& checkpoint = source_.checkpoint;
    source_.is_mimo = has_component_names(checkpoint.catalog) && !keeps_names(request_);
    if (!source_.is_mimo) return {};
    source_.mappings = SW_TRY(load_mappings(request_, checkpoint));
    if (request_.optimizer == OptimizerPolicy::kKeep) {
      SW_TRY(check_component_states(checkpoint.catalog));
      if (!traits_of(request_.format).has_components) {
        SW_TRY(join_optimizers(checkpoint, notes_));
      }
    }
    source_.wrappers =
        SW_TRY(name_components(request_, checkpoint, source_.mappings, checkpoint.catalog));
    if (request_.optimizer == OptimizerPolicy::kDefault) {
      request_.optimizer = OptimizerPolicy::kDrop;
    }
    return {};
  }

  // No rule takes states by Hugging Face's names to Megatron's.
  Status leave_states_of_hf() {
    const bool is_hf = checkpoint().location.traits.is_hf_model;
    if (!is_hf || keeps_names(request_)) return {};
    const bool has_any = std::ranges::any_of(
        checkpoint().catalog.tensors,
        [](const StoredTensor& tensor) { return is_optimizer_name(tensor.desc.name); });
    if (!has_any) return {};
    if (request_.optimizer == OptimizerPolicy::kKeep) {
      return fail(Code::kOptimizerUnsupported,
                  "{}: its optimizer states have Hugging Face's names and are not converted to "
                  "Megatron's; --to dcp and --to safetensors keep them under their names",
                  request_.input);
    }
    request_.optimizer = OptimizerPolicy::kDrop;
    return {};
  }

  // Its own optimizers' files list states without names; those of dist_opt are Megatron-Core's.
  Status name_mlite() {
    if (keeps_names(request_) || !checkpoint().location.traits.has_local_numbers) return {};
    const bool has_named_states = !checkpoint().common_state.empty();
    if (!has_named_states && request_.optimizer == OptimizerPolicy::kKeep) {
      return fail(Code::kOptimizerUnsupported,
                  "{}: MLite's optimizer_rank_R.pt list states in the order of a rank's own "
                  "parameters and are not converted; leave --optimizer keep out",
                  request_.input);
    }
    if (!has_named_states) request_.optimizer = OptimizerPolicy::kDrop;
    return name_mlite_as_megatron(request_, source_.checkpoint, source_.wanted, notes_);
  }

  // That of legacy files is found only when it is wanted: its pickles are large.
  Status read_optimizer() {
    if (!checkpoint().has_unread_optimizer) return {};
    if (!keeps_optimizer(request_)) {
      notes_.emplace_back("optimizer state is dropped");
      return {};
    }
    const std::size_t told = checkpoint().notes.size();
    Defects first;
    source_.checks_master_weights = SW_TRY(read_states(source_.checkpoint, first));
    for (std::size_t i = told; i < checkpoint().notes.size(); ++i) {
      notes_.push_back(checkpoint().notes[i]);
    }
    return {};
  }

  // What a flat buffer holds only the run's common state tells, which stays behind where names are
  // kept; so its states get the names of their tensors there too.
  Status undo_flat() {
    if (!has_unnamed_states(checkpoint(), source_.wanted)) return {};
    if (source_.is_mimo) return refuse_flat_states(request_.input);
    if (keeps_names(request_)) return undo_flat_or_tell();
    source_.checks_master_weights = SW_TRY(name_states(source_.checkpoint, source_.wanted));
    return {};
  }

  Status undo_flat_or_tell() {
    Catalog named = source_.wanted;
    const Result<bool> are_named = has_component_names(named)
                                       ? refuse_flat_states(request_.input)
                                       : name_states(source_.checkpoint, named);
    if (!are_named) {
      notes_.push_back(
          translated("optimizer states are copied in the flat buffers that they lie in, which "
                     "nothing in the new checkpoint explains: {}",
                     are_named.error().message));
      return {};
    }
    source_.wanted = std::move(named);
    source_.checks_master_weights = true;
    notes_.emplace_back("optimizer states in flat buffers get the names of their tensors");
    return {};
  }

  // Which weights are their masters rounded is told by the run and by what it wrote. What a target
  // takes the model from must be the model.
  Status find_master_form() {
    if (!keeps_optimizer(request_) || !has_master_weights(source_.wanted)) return {};
    source_.master_form =
        SW_TRY(form_of_masters(checkpoint().arguments, source_.wanted, *checkpoint().files));
    const std::string_view note = note_on_form(source_.master_form);
    const bool has_main_weights = checkpoint().location.traits.weights_are_main;
    if (!note.empty()) {
      source_.checks_master_weights = false;
      notes_.emplace_back(note);
    } else if (!has_main_weights && traits_of(request_.format).has_masters_for_model) {
      source_.checks_master_weights = true;
    } else if (!has_main_weights && !source_.checks_master_weights) {
      return look_at_masters();
    }
    return {};
  }

  // The modules' tensors, which some format has in place of Megatron's.
  Status undo_pieces() {
    if (keeps_names(request_) || !checkpoint().location.traits.has_module_pieces) return {};
    const bool is_derived = SW_TRY(
        form_of(checkpoint()).to_megatron(request_, source_.checkpoint, source_.wanted, notes_));
    if (is_derived) source_.checks_master_weights = true;
    return {};
  }

  // Names say whose the states are, but Megatron itself has given them to others.
  Status look_at_masters() {
    const SampledMasters sampled =
        SW_TRY(sample_master_weights(source_.wanted, *checkpoint().files));
    if (sampled.strange.empty()) return {};
    notes_.push_back(translated(
        "the master weights of {} of {} parameters that were looked at ({} the first) are not "
        "their weights: states are of another step, or were given to other parameters, as "
        "Megatron-Core does where it saves buckets with padding between them "
        "(--overlap-grad-reduce) as fully_reshardable; 'verify' looks at all; --optimizer drop "
        "leaves states out, and saves without --dist-ckpt-optim-fully-reshardable are right",
        sampled.strange.size(), sampled.looked_at, sampled.strange.front()));
    return {};
  }

  // Rules may be wrong, so what they say is proven; where it can't be, that is said.
  Status tell_proof() {
    if (!source_.checks_master_weights) return {};
    notes_.emplace_back(
        "whose each optimizer state is follows from Megatron's rules; before anything is written, "
        "every master weight is compared with its weight");
    const MasterWeightCheck check = SW_TRY(plan_master_weights(source_.wanted));
    source_.master_weight_bytes = check.bytes;
    const std::vector<std::string>& unproven = check.unproven;
    if (unproven.empty()) return {};
    notes_.push_back(translated(
        "{} parameters, {} the first, are float32 and have no master weight apart: nothing proves "
        "whose their states are but shapes, groups and order",
        unproven.size(), unproven.front()));
    return {};
  }

  // A run would go on with what is missing as if it were zero.
  Status check_states() {
    if (keeps_names(request_) || !keeps_optimizer(request_) || source_.is_mimo) return {};
    const StateFindings found =
        find_wrong_states(source_.wanted, named_optimizer(checkpoint().arguments));
    const bool is_part = !request_.include.empty() || !request_.exclude.empty();
    for (const WrongState& state : found.wrong) {
      if (state.is_lone && is_part) continue;  // its weight may be what was left out
      if (!request_.accept_loss) return fail(Code::kOptimizerUnsupported, "{}", state.what);
      notes_.push_back("--accept-loss: " + state.what);
    }
    if (std::string note = note_on_frozen(found); !note.empty()) notes_.push_back(std::move(note));
    return check_settings(is_part);
  }

  Status check_settings(bool is_part) {
    LostSettings lost = SW_TRY(find_lost_settings(checkpoint(), source_.wanted));
    if (!lost.states.empty() && !is_part) {
      if (!request_.accept_loss) return fail(Code::kOptimizerUnsupported, "{}", lost.states);
      notes_.push_back("--accept-loss: " + lost.states);
    }
    if (!lost.groups.empty()) {
      if (!request_.accept_loss) return fail(Code::kStateUnreadable, "{}", lost.groups);
      notes_.push_back("--accept-loss: " + lost.groups);
    }
    std::ranges::move(lost.others, std::back_inserter(notes_));
    return {};
  }

  ConvertRequest& request_;
  bool is_only_;
  Notes& notes_;
  ConversionSource source_;
};

}  // namespace

bool keeps_names(const ConvertRequest& request) {
  return traits_of(request.format).names == TargetNames::kStored;
}

Result<ConversionSource> open_source(ConvertRequest& request, bool is_only, Notes& notes) {
  return Opening(request, is_only, notes).run();
}

}  // namespace shardwright
