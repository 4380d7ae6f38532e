// SPDX-License-Identifier: Apache-2.0
#include "convert/conversion_source.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/fail.h"
#include "canonical/families.h"
#include "canonical/hf_naming.h"
#include "canonical/mlite_naming.h"
#include "canonical/prediction_source.h"
#include "canonical/source_model.h"
#include "compare/replicas.h"
#include "compare/source_losses.h"
#include "convert/source_proof.h"
#include "convert/source_states.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "format/component_optimizers.h"
#include "format/formats.h"
#include "format/nothing_stored.h"
#include "format/quantizer_values.h"
#include "format/select.h"
#include "format/targets.h"
#include "format/wrapped_adapter.h"
#include "format/wrapped_base.h"
#include "layout/mlite_layout.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

class Opening {
 public:
  Opening(ConvertRequest& request, bool is_only, Notes& notes)
      : request_(request), is_only_(is_only), notes_(notes) {}

  Result<ConversionSource> run() {
    source_.checkpoint = SW_TRY(open_checkpoint(request_.input, FormatChoice{request_.as}));
    for (const std::string& note : checkpoint().notes) notes_.push_back(note);
    leave_quantizer_values_out(source_.checkpoint.catalog, notes_);
    if (const Status state = check_common_state(checkpoint()); !state) {
      notes_.push_back(state.error().message);
    }
    if (request_.replica) {
      notes_.push_back(SW_TRY(take_replica(source_.checkpoint.catalog, *request_.replica)));
    }
    SW_TRY(check_sizes());
    SW_TRY(check_optimizer());
    SW_TRY(check_weights());
    SW_TRY(undo_components());
    SW_TRY(leave_states_of_hf());
    SW_TRY(check_prediction_source(request_, checkpoint().location.traits.is_hf_model));
    SW_TRY(read_optimizer(request_, source_, notes_));
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
    SW_TRY(check_not_smoothed(checkpoint().catalog));
    SW_TRY(check_losses(request_, checkpoint(), source_.wanted, notes_));
    for (std::string& note : SW_TRY(locate_items(source_.wanted, *checkpoint().files))) {
      notes_.push_back(std::move(note));
    }
    if (!keeps_names(request_) && !is_adapter_alone()) {
      SW_TRY(check_wrapped());
      SW_TRY(name_as_hf());
    }
    SW_TRY(name_mlite());
    const bool has_main_weights = checkpoint().location.traits.weights_are_main;
    if (!has_main_weights) SW_TRY(undo_pieces());
    SW_TRY(undo_flat(request_, source_, notes_));
    SW_TRY(find_master_form(request_, source_, notes_));
    SW_TRY(tell_proof(source_, notes_));
    // Main weights are made of the weights, and are no proof of whose states are.
    if (has_main_weights) SW_TRY(undo_pieces());
    SW_TRY(check_states(request_, source_, notes_));
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

  [[nodiscard]] bool is_adapter_alone() const {
    return checkpoint().location.traits.is_hf_model && holds_adapter_alone(source_.wanted);
  }

  // What was trained is the base and the adapter together: neither goes without a word.
  [[nodiscard]] Status check_wrapped() const {
    if (!checkpoint().location.traits.is_hf_model || !request_.adapter.empty()) return {};
    const std::vector<std::string> adapters = adapters_of_wrapped(source_.wanted);
    if (adapters.empty()) return {};
    return fail(
        Code::kUsage,
        "{}: {} tensors are an adapter's ({} the first), beside the base model that it was "
        "trained with; '{}' makes the trained model of both, {} converts the base alone, {} "
        "--to hf makes PEFT's files of the adapter",
        request_.input, adapters.size(), adapters.front(), merge_command_of_wrapped(checkpoint()),
        flags_of_wrapped("--exclude", adapters), flags_of_wrapped("--include", adapters));
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

  // The modules' tensors, which some format has in place of Megatron's.
  Status undo_pieces() {
    if (keeps_names(request_) || !checkpoint().location.traits.has_module_pieces) return {};
    const ModelForm& form = form_of(checkpoint());
    if (form.has_numbered_states(source_.wanted)) source_.checks_master_weights = true;
    return form.to_megatron(request_, source_.checkpoint, source_.wanted, notes_);
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
