// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "base/fail.h"
#include "canonical/attention_heads.h"
#include "canonical/families.h"
#include "canonical/joined_masters.h"
#include "compare/replicas.h"
#include "compare/signature_file.h"
#include "compare/source_losses.h"
#include "convert/average_drafts.h"
#include "convert/averaged_models.h"
#include "convert/carried_documents.h"
#include "convert/carried_pickles.h"
#include "convert/cast_masters.h"
#include "convert/conversion_source.h"
#include "convert/drafting.h"
#include "convert/megatron_state.h"
#include "convert/memory_budget.h"
#include "convert/more_sources.h"
#include "convert/remote_run.h"
#include "convert/renames.h"
#include "convert/upcycle_drafts.h"
#include "format/fsdp_dtensor/source.h"
#include "format/peft/source.h"
#include "format/select.h"
#include "format/targets.h"
#include "layout/tower.h"
#include "model/apply.h"
#include "remote/remote_output.h"
#include "state/document_names.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

Status check_form(const Drafting& drafting) {
  const bool is_asked = drafting.request().quantise != WeightForm::kPlain;
  if (!is_asked || drafting.traits().names == TargetNames::kHf) return {};
  return fail(Code::kUsage,
              "--quantise does not apply to --to {}: only Hugging Face models are stored so; leave "
              "it out, or convert --to hf",
              drafting.traits().name);
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
  drafting.parts.weights_are_main = is_fsdp(result.source);
  SW_TRY(check_family_choice(result.request, result.source));
  // A target that keeps the optimizer resumes training: wrapper prefixes are restored.
  if (keeps_optimizer(result.request)) drafting.parts.wrappers = std::move(source.wrappers);
  return {};
}

void count_replicas(Drafting& drafting) {
  PreparedConversion& result = drafting.result;
  const ReplicaReport replicas = cost_of_replicas(drafting.catalog, result.request.check_replicas);
  result.replicas = {replicas.compared, replicas.bytes};
}

// Where names stay as they are. What is done to values may need a family all the same.
void tell_unused_choice(Drafting& drafting) {
  const ConvertRequest& choice = drafting.request();
  const bool is_used =
      !drafting.mappings.empty() || !choice.adapter.empty() || !choice.averaged.empty();
  if (is_used) return;
  std::vector<std::string_view> flags;
  if (!choice.family.empty()) flags.emplace_back("--family");
  if (!choice.hf_config_dir.empty()) flags.emplace_back("--hf-config");
  if (!choice.map_files.empty()) flags.emplace_back("--map");
  if (flags.empty()) return;
  drafting.tell(translated("no use is made of {}: --to {} keeps the names that are stored",
                           fmt::join(flags, ", "), drafting.traits().name));
}

Status make_drafts(Drafting& drafting) {
  const bool keeps_names = drafting.traits().names == TargetNames::kStored;
  if (is_peft(drafting.source()) && !keeps_names) return draft_peft_as_megatron(drafting);
  if (drafting.request().adapter_names != AdapterNames::kDefault) {
    return fail(Code::kUsage,
                "{}: --adapter-names is about an adapter in PEFT's files, and this is a {} "
                "checkpoint; leave it out",
                drafting.request().input, drafting.source().location.format);
  }
  switch (drafting.traits().names) {
    case TargetNames::kStored:
      SW_TRY(drafting.target->draft_stored(drafting.request(), drafting.source(), drafting.catalog,
                                           drafting.parts, drafting.result.notes));
      SW_TRY(keep_own_dtypes(drafting));
      tell_unused_choice(drafting);
      return {};
    case TargetNames::kHf:
      return drafting.is_from_hf() ? draft_hf_as_hf(drafting) : draft_megatron_as_hf(drafting);
    case TargetNames::kMegatron:
      return drafting.is_from_hf() ? draft_hf_as_megatron(drafting)
                                   : draft_megatron_as_megatron(drafting);
  }
  return {};
}

// A torch_dist checkpoint loads with other TPs than it was cut for; files of ranks don't.
Status check_heads(Drafting& drafting) {
  const TargetParts& parts = drafting.parts;
  const Status status =
      check_attention_heads(parts.tensors, parts.arguments, [&](std::string_view name) {
        const ComponentRoute* route = route_of(parts.routes, name);
        return route == nullptr ? tensor_size_of(name, drafting.request().parallel)
                                : parts.components.find(route->name)->tensor;
      });
  if (status || drafting.traits().is_of_fixed_ranks) return status;
  drafting.tell(status.error().message +
                translated("; what is written loads with such a size only"));
  return {};
}

// Beside what the model had at Hugging Face, so that an export knows what it can't have.
Status list_left_out(Drafting& drafting) {
  TargetParts& parts = drafting.parts;
  if (drafting.traits().holds_extras) return {};
  for (TargetFile& file : parts.files) {
    if (!file.path.ends_with(kSourceKeysFile)) continue;
    file.bytes = SW_TRY(with_left_out(std::move(file.bytes), parts.left_out));
  }
  return {};
}

// From drafts to the plan's source side and all that the target lays out.
Status finish_drafts(Drafting& drafting) {
  PreparedConversion& result = drafting.result;
  TargetParts& parts = drafting.parts;
  SW_TRY(refuse_hostile_pickles(parts, *result.source.files));
  SW_TRY(drafting.target->check_tensors(result.family, parts));
  SW_TRY(check_heads(drafting));
  SW_TRY(mend_documents(result.request, result.source, parts.components.components, parts,
                        result.notes));
  SW_TRY(list_left_out(drafting));
  SW_TRY(drafting.target->make_entries(result.request, parts, result.notes));
  result.renames = renames_of(parts.tensors, result.plan, drafting.catalog,
                              std::exchange(drafting.stored_names, {}));
  drafting.mappings = {};
  result.plan.source = std::move(drafting.catalog);
  result.plan.source.objects.clear();  // the target's parts name the ones that go along
  result.components = drafting.target->components(parts);
  return {};
}

// What is only read, or compared with a model that is, is not held against its family.
enum class Purpose : std::uint8_t { kConversion, kReading, kAveraging };

Result<Drafting> draft(const ConvertRequest& request, Purpose purpose);

// Halves of master weights, unless the target keeps the source's names.
Status join_masters_of(Drafting& drafting) {
  const bool has_halves = drafting.master_form == MasterForm::kRemainders;
  if (!has_halves || keeps_names(drafting.request())) return {};
  const auto repeat = [&](std::uint32_t source) { return repeat_source(drafting, source); };
  const bool are_joined = SW_TRY(join_masters(
      {drafting.catalog, drafting.parts.tensors, drafting.result.plan.weighted, repeat}));
  if (!are_joined) return {};
  drafting.tell(
      "master weights are stored as what the weights lack of them "
      "(--use-precision-aware-optimizer); they are written as the float32 numbers that both "
      "make, which a run without that flag loads");
  return {};
}

// Each of the others is drafted as the conversion that it would be alone.
Status draft_average(Drafting& drafting) {
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

Result<Drafting> draft(const ConvertRequest& request, Purpose purpose) {
  SW_TRY(check_average(request));
  Drafting drafting;
  drafting.result.request = request;
  if (!request.averaged.empty()) drafting.result.request.optimizer = OptimizerPolicy::kDrop;
  drafting.target = SW_TRY(find_target(request.format));
  SW_TRY(check_form(drafting));
  SW_TRY(check_upcycling(request, drafting.traits()));
  SW_TRY(drafting.target->settle_sizes(drafting.result.request, drafting.parts));
  SW_TRY(take_source(drafting, request.averaged.empty() && purpose != Purpose::kAveraging));
  if (purpose == Purpose::kConversion) {
    SW_TRY(check_copied_model(drafting));
    SW_TRY(tell_lacking_tensors(drafting));
  }
  SW_TRY(drop_prediction_layers(drafting));
  count_replicas(drafting);
  SW_TRY(take_adapter(drafting));
  SW_TRY(make_drafts(drafting));
  SW_TRY(join_masters_of(drafting));
  cast_masters(drafting);
  SW_TRY(add_adapter(drafting));
  SW_TRY(draft_average(drafting));
  return drafting;
}

Result<PreparedConversion> prepare(const ConvertRequest& request) {
  Drafting drafting = SW_TRY(draft(request, Purpose::kConversion));
  PreparedConversion& result = drafting.result;
  SW_TRY(finish_drafts(drafting));
  SW_TRY(drafting.target->lay_out(result.request, drafting.parts, result.plan, result.notes));
  SW_TRY(check_plan(result.plan));
  result.peak_memory_bytes = SW_TRY(budget_of(result.request, result.source, result.plan)).bytes();
  return std::move(result);
}

// By name while they are few; a part that Megatron lacks (a talker) may have hundreds.
void tell_extras_left_out(const std::vector<std::string>& names, Drafting& drafting) {
  constexpr std::size_t kMostNamed = 8;
  if (names.size() > kMostNamed) {
    drafting.tell(translated("{} and {} more are left out: the target has no place for them",
                             names.front(), names.size() - 1));
    return;
  }
  for (const std::string& name : names) {
    drafting.tell(translated("{} is left out: the target has no place for it", name));
  }
}

}  // namespace

void Drafting::replace_config(std::string text) {
  result.source.hf_config = std::move(text);
  std::erase_if(result.source.artifacts,
                [](const auto& artifact) { return artifact.first == kHfConfigFile; });
  parts.files.push_back(
      {fmt::format("{}{}", traits().hf_folder, kHfConfigFile), result.source.hf_config});
}

Status load_mappings(Drafting& drafting) {
  if (!drafting.mappings.empty()) return {};
  drafting.mappings = SW_TRY(load_mappings(drafting.request(), drafting.source()));
  return {};
}

Result<QuantiseChoice> choose_quantisation(const ConvertRequest& request,
                                           std::string_view config_text,
                                           const ReleasedQuantisation& released) {
  const WeightForm form = request.quantise;
  const auto scheme =
      form == WeightForm::kMxfp4 ? Quantising::Scheme::kMxfp4 : Quantising::Scheme::kFp8;
  return choose_quantisation(scheme, form == WeightForm::kFp8BlockUe8m0, config_text, released);
}

// A Megatron model that loads strictly has no place for what Hugging Face stores beyond it, and a
// legacy file no other.
void finish_megatron_drafts(Drafting& drafting) {
  TargetParts& parts = drafting.parts;
  if (!drafting.traits().holds_extras) {
    std::vector<std::string> left_out;
    std::erase_if(parts.tensors, [&](const DraftTensor& tensor) {
      if (!tensor.desc.name.starts_with(kHfExtraPrefix)) return false;
      left_out.push_back(tensor.desc.name.substr(kHfExtraPrefix.size()));
      return true;
    });
    tell_extras_left_out(left_out, drafting);
    parts.left_out = std::move(left_out);
  }
  settle_expert_sizes(parts, drafting.result.request.parallel);
  name_for_spec(drafting.request().spec, parts.tensors);
}

Result<PreparedConversion> prepare_conversion(const ConvertRequest& request) {
  SW_TRY(check_output_path(request.output));
  SW_TRY(check_remote_output(request));
  // A key that is of no use is told before the work.
  if (!request.sign.empty()) SW_TRY(read_signing_key(request.sign));
  Result<PreparedConversion> prepared = prepare(request);
  if (prepared) return prepared;
  return std::unexpected(why_not_accepted(request, std::move(prepared).error()));
}

Result<Drafting> draft_conversion(const ConvertRequest& request) {
  Result<Drafting> drafting = draft(request, Purpose::kReading);
  if (drafting) return drafting;
  return std::unexpected(why_not_accepted(request, std::move(drafting).error()));
}

}  // namespace shardwright
