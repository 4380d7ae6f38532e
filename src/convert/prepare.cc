// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/fail.h"
#include "canonical/families.h"
#include "compare/replicas.h"
#include "compare/signature_file.h"
#include "compare/source_losses.h"
#include "convert/adapter_drafts.h"
#include "convert/asked_quantisation.h"
#include "convert/average_drafts.h"
#include "convert/averaged_models.h"
#include "convert/conversion_source.h"
#include "convert/copied_model.h"
#include "convert/finished_plan.h"
#include "convert/hf_drafts.h"
#include "convert/kept_names.h"
#include "convert/lacking_tensors.h"
#include "convert/master_drafts.h"
#include "convert/megatron_drafts.h"
#include "convert/peft_drafts.h"
#include "convert/prediction_drafts.h"
#include "convert/prepared_drafts.h"
#include "convert/remote_run.h"
#include "convert/upcycle_drafts.h"
#include "convert/wrapped_adapter_drafts.h"
#include "format/adapter_note.h"
#include "format/file_of_tensor.h"
#include "format/select.h"
#include "format/targets.h"
#include "format/wrapped_adapter.h"
#include "remote/remote_output.h"

namespace shardwright {
namespace {

// What is only read, or compared with a model that is, is not held against its family.
enum class Purpose : std::uint8_t { kConversion, kReading, kAveraging };

// The steps, in the order in which a conversion takes them.
Status check_output(const ConvertRequest& request);
Result<PreparedConversion> prepare(const ConvertRequest& request);
Result<Drafting> draft(const ConvertRequest& request, Purpose purpose);
Result<Drafting> begin_draft(const ConvertRequest& request);
Status read_source(Purpose purpose, Drafting& drafting);
Status make_drafts(Drafting& drafting);
Status add_averaged(Drafting& drafting);

}  // namespace

Result<PreparedConversion> prepare_conversion(const ConvertRequest& request) {
  SW_TRY(check_output(request));
  Result<PreparedConversion> prepared = prepare(request);
  if (prepared) return prepared;
  return std::unexpected(why_not_accepted(request, std::move(prepared).error()));
}

Result<Drafting> draft_conversion(const ConvertRequest& request) {
  Result<Drafting> drafting = draft(request, Purpose::kReading);
  if (drafting) return drafting;
  return std::unexpected(why_not_accepted(request, std::move(drafting).error()));
}

namespace {

Status check_output(const ConvertRequest& request) {
  SW_TRY(check_output_path(request.output));
  SW_TRY(check_remote_output(request));
  // A key that is of no use is told before the work.
  if (!request.sign.empty()) SW_TRY(read_signing_key(request.sign));
  return {};
}

Result<PreparedConversion> prepare(const ConvertRequest& request) {
  return finish_plan(SW_TRY(draft(request, Purpose::kConversion)));
}

Result<Drafting> draft(const ConvertRequest& request, Purpose purpose) {
  Drafting drafting = SW_TRY(begin_draft(request));
  SW_TRY(read_source(purpose, drafting));
  SW_TRY(take_adapter(drafting));
  if (Status made = make_drafts(drafting); !made) {
    return std::unexpected(with_file(std::move(made).error(), drafting.catalog));
  }
  SW_TRY(join_masters(drafting));
  cast_masters(drafting);
  SW_TRY(add_adapter(drafting));
  SW_TRY(add_averaged(drafting));
  return drafting;
}

// What can be told before the source is opened.
Result<Drafting> begin_draft(const ConvertRequest& request) {
  SW_TRY(check_average(request));
  Drafting drafting;
  drafting.result.request = request;
  if (!request.averaged.empty()) drafting.result.request.optimizer = OptimizerPolicy::kDrop;
  drafting.target = SW_TRY(find_target(request.format));
  SW_TRY(check_quantisable(request, drafting.traits()));
  SW_TRY(check_upcycling(request, drafting.traits()));
  SW_TRY(drafting.target->settle_sizes(drafting.result.request, drafting.parts));
  return drafting;
}

Status take_source(Drafting& drafting, bool is_only) {
  PreparedConversion& result = drafting.result;
  ConversionSource source = SW_TRY(open_source(result.request, is_only, result.notes));
  result.source = std::move(source.checkpoint);
  result.checks_master_weights = source.checks_master_weights;
  result.master_weight_bytes = source.master_weight_bytes;
  drafting.master_form = source.master_form;
  drafting.catalog = std::move(source.wanted);
  drafting.mappings = std::move(source.mappings);
  drafting.parts.has_component_states = source.is_mimo;
  drafting.parts.weights_are_main = result.source.location.traits.weights_are_main;
  SW_TRY(check_family_choice(result.request, result.source));
  // A target that keeps the optimizer resumes training: wrapper prefixes are restored.
  if (keeps_optimizer(result.request)) drafting.parts.wrappers = std::move(source.wrappers);
  return {};
}

Status read_source(Purpose purpose, Drafting& drafting) {
  PreparedConversion& result = drafting.result;
  const bool is_only = result.request.averaged.empty() && purpose != Purpose::kAveraging;
  SW_TRY(take_source(drafting, is_only));
  if (purpose == Purpose::kConversion) {
    SW_TRY(check_copied_model(drafting));
    SW_TRY(tell_lacking_tensors(drafting));
    if (std::string gaps = note_on_adapter_gaps(drafting.source()); !gaps.empty()) {
      drafting.tell(std::move(gaps));
    }
  }
  SW_TRY(drop_prediction_layers(drafting));
  const ReplicaReport replicas = cost_of_replicas(drafting.catalog, result.request.check_replicas);
  result.replicas = {replicas.compared, replicas.bytes};
  return {};
}

Status make_drafts(Drafting& drafting) {
  const TargetNames names = drafting.traits().names;
  const bool is_adapter = drafting.source().location.traits.is_adapter;
  if (is_adapter && names != TargetNames::kStored) return draft_peft_as_megatron(drafting);
  SW_TRY(check_adapter_names(drafting));
  const bool is_wrapped = drafting.is_from_hf() && holds_adapter_alone(drafting.catalog);
  if (is_wrapped && names != TargetNames::kStored) return draft_wrapped_adapter(drafting);
  switch (names) {
    case TargetNames::kStored:
      return draft_with_kept_names(drafting);
    case TargetNames::kHf:
      return drafting.is_from_hf() ? draft_hf_as_hf(drafting) : draft_megatron_as_hf(drafting);
    case TargetNames::kMegatron:
      return drafting.is_from_hf() ? draft_hf_as_megatron(drafting)
                                   : draft_megatron_as_megatron(drafting);
  }
  return {};
}

// Each of the others is drafted as the conversion that it would be alone.
Status add_averaged(Drafting& drafting) {
  if (drafting.request().averaged.empty()) return {};
  begin_average(drafting);
  for (const std::string& path : drafting.request().averaged) {
    Result<Drafting> other = draft(request_for_averaged(drafting, path), Purpose::kAveraging);
    if (!other) {
      const bool is_named = other.error().message.find(path) != std::string::npos;
      if (is_named) return std::unexpected(std::move(other).error());
      return std::unexpected(std::move(other).error().within(path));
    }
    SW_TRY(add_to_average(*std::move(other), drafting));
    SW_TRY(check_one_model(drafting, path, drafting.result.averaged.back().checkpoint));
  }
  // What one of them lacks, a pattern for it may leave out of the others.
  std::vector<const Catalog*> all = {&drafting.source().catalog};
  for (const AveragedSource& averaged : drafting.result.averaged) {
    all.push_back(&averaged.checkpoint.catalog);
  }
  return check_patterns(all, drafting.request());
}

}  // namespace

}  // namespace shardwright
