// SPDX-License-Identifier: Apache-2.0
#include "convert/megatron_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/notes.h"
#include "canonical/contradictions.h"
#include "canonical/families.h"
#include "convert/bridge_config.h"
#include "convert/carried_objects.h"
#include "convert/fitted_vocabulary.h"
#include "convert/kept_stages.h"
#include "format/config_edits.h"
#include "format/rank_modules.h"
#include "format/select.h"
#include "format/targets.h"
#include "layout/expert_names.h"
#include "layout/extra_state.h"
#include "layout/hybrid_stages.h"
#include "layout/layer_name.h"
#include "layout/model_head.h"
#include "layout/placement.h"
#include "layout/shard_contents.h"
#include "layout/state_name.h"
#include "layout/state_sharding.h"
#include "state/common_state.h"
#include "state/document_names.h"
#include "state/recorded_run.h"
#include "state/run_split.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

// What the target's own layout says stays.
void add_missing(const ArgumentList& more, ArgumentList& edits) {
  for (const auto& [name, value] : more) {
    const auto is_it = [&](const auto& edit) { return edit.first == name; };
    if (std::ranges::none_of(edits, is_it)) edits.emplace_back(name, value);
  }
}

// An output layer of its own, whatever a language model of the family would do.
void add_head_argument(const TargetParts& parts, ArgumentList& edits) {
  const OutputHeads heads(descs_of(parts.tensors));
  const auto is_head = [&](const DraftTensor& tensor) { return heads.has(tensor.desc); };
  if (std::ranges::none_of(parts.tensors, is_head)) return;
  edits.emplace_back("untie_embeddings_and_output_weights", true);
}

// Nothing else tells a last stage's copy of the embedding in files of ranks from a head.
ArgumentList tying_of(const TargetParts& parts) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(parts.tensors,
                               [&](const DraftTensor& tensor) { return tensor.desc.name == name; });
  };
  if (!has("embedding.word_embeddings.weight")) return {};
  return {{"untie_embeddings_and_output_weights", has("output_layer.weight")}};
}

void add_vocabulary_argument(const ConvertRequest& request, ArgumentList& edits) {
  if (request.extend_vocab) edits.emplace_back("vocab_size", *request.extend_vocab);
}

// Of which spec the modules are: nothing else in a torch_dist directory always tells.
void add_spec_argument(ModuleSpec spec, ArgumentList& edits) {
  if (spec == ModuleSpec::kKeep) return;
  const bool is_local = spec == ModuleSpec::kLocal;
  edits.emplace_back("transformer_impl", std::string(is_local ? "local" : "transformer_engine"));
}

// What the weights are, whatever the config.json said that they were made from.
void add_dtype_arguments(const TargetParts& parts, ArgumentList& edits) {
  const std::optional<DType> dtype = written_dtype(parts.tensors);
  if (!dtype) return;
  edits.emplace_back("bf16", *dtype == DType::kBF16);
  edits.emplace_back("fp16", *dtype == DType::kF16);
}

// Wherever the source speaks of its encoders' tensor size, and where the target has one. Towers lie
// on the first of the target's stages, whatever the source's had to themselves.
void add_encoder_arguments(const ParallelConfig& parallel, const Arguments& source,
                           ArgumentList& edits) {
  const std::span<const std::string_view> names = encoder_size_names();
  const bool is_apart = parallel.encoder_tensor > 0;
  const std::int64_t size = is_apart ? parallel.encoder_tensor : parallel.tensor;
  for (const std::string_view name : names) {
    const bool is_told = number_of(source, {name}).value_or(0) > 0;
    if (is_told || (is_apart && name == names.front())) edits.emplace_back(name, size);
  }
  if (number_of(source, {kEncoderStages}).value_or(0) > 0) {
    edits.emplace_back(kEncoderStages, std::int64_t{0});
  }
}

// What files of ranks were laid out by that the output's, and torch_dist, are not.
void drop_source_layout(const Arguments& source, ArgumentList& edits,
                        std::vector<std::string>& notes) {
  std::string dropped;
  const auto set = [&](std::string_view name, ArgValue value) {
    dropped += fmt::format("{}{}", dropped.empty() ? "" : ", ", name);
    edits.emplace_back(name, std::move(value));
  };
  const auto method = source.find(kScheduleMethod);
  if (method != source.end() && method->second == ArgValue{std::string(kDualPipeV)}) {
    set(kScheduleMethod, {});
  }
  for (const std::string_view flag :
       {kUsesDualPipeV, kExtendsExperts, kGroupedExpertWeight, kGroupedExpertBias}) {
    if (is_true(source, flag)) set(flag, false);
  }
  if (!noop_layers_of(source).empty()) {
    set(kNoopLayers, {});
    if (const auto layers = number_of(source, {"num_layers"})) {
      edits.emplace_back("num_layers", *layers);
    }
  }
  if (dropped.empty()) return;
  notes.push_back(translated(
      "{}: the source's files are laid out by it, the output is not: its arguments say otherwise",
      dropped));
}

// The entries that modules of `spec` ask for: those at hand, empty ones for the rest, and none that
// local modules do not know.
void complete_extra_states(ModuleSpec spec, std::string empty, TargetParts& parts) {
  std::vector<TensorDesc> descs;
  for (const DraftTensor& tensor : parts.tensors) {
    if (!is_optimizer_name(tensor.desc.name)) descs.push_back(tensor.desc);
  }
  std::vector<std::string> asked = extra_state_names(descs, spec);
  descs = {};
  const std::unordered_set<std::string_view> known(asked.begin(), asked.end());
  std::erase_if(parts.copied_objects, [&](const StoredObject& object) {
    return spec == ModuleSpec::kLocal && object.name.find("._extra_state/") != std::string::npos &&
           !known.contains(object.name);
  });
  std::unordered_set<std::string_view> present;
  for (const StoredObject& object : parts.copied_objects) present.insert(object.name);
  const auto shared = std::make_shared<const std::string>(std::move(empty));
  parts.new_objects.reserve(asked.size());
  for (std::string& name : asked) {
    if (!present.contains(name)) parts.new_objects.emplace_back(std::move(name), shared);
  }
}

// Whether the state says that optimizer states are in buckets where the target has those of
// tensors.
bool corrects_sharding(const CommonState& common, const TargetParts& parts,
                       std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const DraftTensor& tensor : parts.tensors) names.push_back(tensor.desc.name);
  std::string what = contradicted_sharding(common.sharding(), names);
  if (what.empty()) return false;
  notes.push_back(std::move(what));
  return std::ranges::any_of(names, [](const std::string& name) {
    return split_state_name(name).has_value() && !name.starts_with("chained_");
  });
}

// A hybrid model's pattern with the stages of the target; empty where the model has none.
std::string staged_pattern(const Placement& placement, const Arguments& model) {
  const auto pattern = model.find("hybrid_layer_pattern");
  const auto* text = pattern == model.end() ? nullptr : std::get_if<std::string>(&pattern->second);
  return text == nullptr ? "" : with_stages(*text, placement.layers(), placement.pipeline());
}

// What the state says, or else the folder's name.
std::int64_t iteration_of(const Checkpoint& source, const std::optional<CommonState>& common) {
  return source.location.iteration.value_or(common ? common->iteration().value_or(0) : 0);
}

void tell_iteration(const Checkpoint& source, const std::optional<CommonState>& common,
                    std::int64_t iteration, std::vector<std::string>& notes) {
  if (!common) return;
  const std::optional<std::int64_t> said = common->iteration();
  if (!said) {
    notes.push_back(translated("{}: its state does not say which iteration it is of: {} is written",
                               source.location.path, iteration));
  } else if (*said != iteration) {
    notes.push_back(translated(
        "{}: found iteration {} in its state, and {} in the folder's name: a run takes the first, "
        "the output's folder has the second",
        source.location.path, *said, iteration));
  }
}

// A run that shares its layers out by arguments of its own does so again unless it is told.
void tell_other_stages(const ConvertRequest& request, const Arguments& run,
                       const TargetParts& parts, std::vector<std::string>& notes) {
  const std::string said_before = said_of_stages(run);
  const bool has_stages =
      traits_of(request.format).holds_state_dicts && request.parallel.pipeline > 1;
  if (!has_stages || parts.splits || said_before.empty()) return;
  notes.push_back(translated(
      "the run shared its layers out by arguments of its own ({}); with these sizes stages have "
      "other layers, as the arguments of the output say: whoever loads it leaves the run's out",
      said_before));
}

// What the target has otherwise than the source, and rows of the vocabulary as it wants them.
Status edit_arguments(const ConvertRequest& request, const Checkpoint& source, TargetParts& parts,
                      ArgumentList& edits, std::vector<std::string>& notes) {
  const VocabularyRows vocabulary = meant_rows(request, source, parts);
  SW_TRY(fit_vocabulary(request, vocabulary, parts, edits));
  add_vocabulary_argument(request, edits);
  const Arguments run = SW_TRY(run_arguments(source));
  SW_TRY(add_layout_arguments(request.parallel, run, parts));
  tell_other_stages(request, run, parts, notes);
  std::ranges::copy(parts.layout, std::back_inserter(edits));
  std::ranges::copy(parts.model_edits, std::back_inserter(edits));
  if (source.location.traits.is_of_ranks || traits_of(request.format).holds_state_dicts) {
    drop_source_layout(run, edits, notes);
  }
  add_encoder_arguments(request.parallel, source.arguments, edits);
  add_spec_argument(request.spec, edits);
  return {};
}

// How the optimizers of the run that loads it are chained.
void edit_optimizer(const ConvertRequest& request, const TargetParts& parts,
                    CommonStateEdits& edits) {
  const auto has = [&](const auto& is_one) {
    return std::ranges::any_of(parts.tensors,
                               [&](const DraftTensor& tensor) { return is_one(tensor.desc.name); });
  };
  const ParallelConfig& parallel = request.parallel;
  edits.drop_optimizer = !keeps_optimizer(request);
  edits.chain.may_share_out_layers = !traits_of(request.format).holds_state_dicts;
  edits.chain.experts_apart =
      has([](const std::string& name) { return is_of_routed_experts(name); }) &&
      (parallel.expert > 1 || parallel.expert_tensor != parallel.tensor);
  edits.chain.experts_have_biases = has([](const std::string& name) {
    return is_of_routed_experts(name) && name.ends_with(".bias");
  });
  // Files of ranks have no such names.
  edits.has_chained_names =
      !traits_of(request.format).holds_state_dicts &&
      has([](const std::string& name) { return name.starts_with("chained_"); });
}

// Of which spec the target's modules are: as it is asked for, or as the source shows.
ModuleSpec spec_of_target(const ConvertRequest& request, const Checkpoint& source,
                          const Catalog& selected) {
  if (request.spec != ModuleSpec::kKeep) return request.spec;
  if (uses_transformer_engine(source.arguments, source.versioned_names, selected)) {
    return ModuleSpec::kTransformerEngine;
  }
  // Files of ranks have the states of modules in their state dicts.
  const bool is_local = source.location.traits.is_of_ranks && uses_local_modules(source.arguments);
  return is_local ? ModuleSpec::kLocal : ModuleSpec::kKeep;
}

Status settle_modules(ModuleSpec spec, const Checkpoint& source, TargetParts& parts) {
  if (spec != ModuleSpec::kKeep) {
    std::string empty = SW_TRY(empty_extra_state());
    complete_extra_states(spec, std::move(empty), parts);
  }
  parts.spec = spec;
  parts.versioned_names = source.versioned_names;
  if (source.location.traits.is_of_ranks) return {};
  parts.final_norm_has_state =
      std::ranges::any_of(source.catalog.objects, [](const StoredObject& object) {
        return object.name.find("final_layernorm._extra_state") != std::string::npos;
      });
  return {};
}

// NeMo and verl store no arguments, or elsewhere, and Megatron asks for them.
void add_untold_arguments(const Checkpoint& source, const TargetParts& parts, ArgumentList& edits,
                          std::vector<std::string>& notes) {
  add_dtype_arguments(parts, edits);
  ArgumentList told(source.arguments.begin(), source.arguments.end());
  // A YAML file has more than attributes: what a value is made of, and sections.
  std::erase_if(told, [](const auto& edit) {
    return edit.first.starts_with('_') || edit.first.contains('.');
  });
  add_missing(told, edits);
  add_missing(tying_of(parts), edits);
  if (source.arguments.empty()) {
    notes.push_back("the source has no arguments of a run: those of the layout are written");
  }
}

}  // namespace

Status add_layout_arguments(const ParallelConfig& parallel, const Arguments& model,
                            TargetParts& parts) {
  ArgumentList& edits = parts.layout;
  const std::vector<TensorDesc> descs = descs_of(parts.tensors);
  parts.splits = kept_stages(model, parallel, descs);
  const Placement placement = SW_TRY(Placement::make(descs, parallel, parts.splits));
  if (parallel.pipeline > 1 && placement.layers() == 0) {
    return fail(Code::kNotDivisible,
                "--pp {}: the model has no layers to share out among stages; leave it out",
                parallel.pipeline);
  }
  const PipelineSplit& pipeline = placement.pipeline();
  edits.emplace_back("tensor_model_parallel_size", parallel.tensor);
  edits.emplace_back("pipeline_model_parallel_size", parallel.pipeline);
  constexpr const char* kSame = "transformer_pipeline_model_parallel_size";  // of Megatron 0.19
  if (model.contains(kSame)) edits.emplace_back(kSame, parallel.pipeline);
  edits.emplace_back("expert_model_parallel_size", parallel.expert);
  edits.emplace_back("expert_tensor_parallel_size", parallel.expert_tensor);
  if (parts.splits) return {};  // whatever the run says of its stages stays true
  std::string staged = staged_pattern(placement, model);
  // Megatron refuses what says the same beside bars.
  const bool has_bars = tells_stages(staged);
  const bool is_virtual = parallel.virtual_pipeline > 1;
  const auto said = [](bool is_said, std::int64_t value) {
    return is_said ? ArgValue{value} : ArgValue{};
  };
  edits.emplace_back("virtual_pipeline_model_parallel_size",
                     said(is_virtual, parallel.virtual_pipeline));
  edits.emplace_back("num_layers_per_virtual_pipeline_stage",
                     said(is_virtual && !has_bars,
                          placement.layers() / (parallel.pipeline * parallel.virtual_pipeline)));
  edits.emplace_back("num_virtual_stages_per_pipeline_rank",
                     said(is_virtual && !has_bars, parallel.virtual_pipeline));
  edits.emplace_back("decoder_first_pipeline_num_layers", ArgValue{});
  edits.emplace_back("decoder_last_pipeline_num_layers",
                     said(pipeline.uneven_last() > 0 && !has_bars, pipeline.uneven_last()));
  edits.emplace_back("pipeline_model_parallel_layout", ArgValue{});
  edits.emplace_back("account_for_embedding_in_pipeline_split", false);
  edits.emplace_back("account_for_loss_in_pipeline_split", false);
  if (!staged.empty()) edits.emplace_back("hybrid_layer_pattern", std::move(staged));
  return {};
}

bool has_numbered_layers(const TargetParts& parts) {
  return std::any_of(parts.tensors.begin(), parts.tensors.end(), [](const DraftTensor& tensor) {
    const std::optional<LayerName> layer = split_layer_name(tensor.desc.name);
    return layer && layer->index && layer->stack.ends_with("decoder.layers");
  });
}

void settle_expert_sizes(const TargetParts& parts, ParallelConfig& parallel,
                         std::vector<std::string>& notes) {
  const bool has_experts = std::ranges::any_of(
      parts.tensors, [](const DraftTensor& tensor) { return is_expert_tensor(tensor.desc.name); });
  if (has_experts) return;
  const auto settle = [&](std::string_view flag, std::int64_t& size, std::int64_t meant) {
    if (size == meant) return;
    notes.push_back(translated("no use is made of {} {}: the model has no experts", flag, size));
    size = meant;
  };
  settle("--ep", parallel.expert, 1);
  settle("--etp", parallel.expert_tensor, parallel.tensor);
}

Status add_state_from_megatron(const ConvertRequest& request, const Checkpoint& source,
                               const Catalog& selected, TargetParts& parts,
                               std::vector<std::string>& notes) {
  const ArgumentList corrected = SW_TRY(corrected_arguments(request, source, notes));
  std::optional<CommonState> common;
  if (!source.common_state.empty()) common = SW_TRY(CommonState::read(source.common_state));
  const std::int64_t iteration = iteration_of(source, common);
  const bool is_release = source.location.path.ends_with("/release");
  parts.folder = is_release ? "release/" : fmt::format("iter_{:07}/", iteration);
  parts.tracker = is_release ? "release" : std::to_string(iteration);
  tell_iteration(source, common, iteration, notes);

  CommonStateEdits edits;
  edits.iteration = (common ? common->iteration() : std::nullopt).value_or(iteration);
  SW_TRY(edit_arguments(request, source, parts, edits.arguments, notes));
  add_missing(corrected, edits.arguments);
  if (request.dtype) edits.dtype = written_dtype(parts.tensors);
  if (source.location.traits.has_layers_apart) {
    edits.numbered_layers = has_numbered_layers(parts);
  }
  edit_optimizer(request, parts, edits);

  SW_TRY(carry_objects(request, source, selected, parts, notes));
  say_whether_rng_is_there(request, parts, edits.arguments);
  SW_TRY(settle_modules(spec_of_target(request, source, selected), source, parts));
  if (common && !edits.drop_optimizer) {
    edits.says_reshardable = corrects_sharding(*common, parts, notes);
  }
  const bool lacks_arguments = !common || common->arguments().empty();
  if (lacks_arguments) add_untold_arguments(source, parts, edits.arguments, notes);
  if (common) {
    parts.common_state = SW_TRY(common->encode(edits, notes));
  } else {
    const bool numbered = has_numbered_layers(parts);
    parts.common_state = SW_TRY(new_common_state(edits.arguments, iteration, numbered));
  }
  parts.arguments = source.arguments;
  for (const auto& [name, value] : corrected) parts.arguments.insert_or_assign(name, value);
  for (const auto& [name, value] : parts.model_edits) {
    parts.arguments.insert_or_assign(name, value);
  }
  return {};
}

Status add_state_from_hf(const ConvertRequest& request, const ModelTensors& model,
                         const ModelFacts& facts, TargetParts& parts,
                         std::vector<std::string>& notes) {
  const std::span<const TensorDesc> hf = model.tensors;
  parts.folder = "iter_0000000/";
  SW_TRY(check_config(request.input, *facts.config, hf));
  ArgsFromConfig made = SW_TRY(args_from_hf_config(*facts.mapping, *facts.config, hf));
  ArgumentList arguments = std::move(made.values);
  for (std::string& note : made.notes) notes.push_back(std::move(note));
  ArgumentList edits;
  SW_TRY(fit_vocabulary(request, {}, parts, edits));
  add_vocabulary_argument(request, edits);
  add_head_argument(parts, edits);
  SW_TRY(
      add_layout_arguments(request.parallel, Arguments(arguments.begin(), arguments.end()), parts));
  std::ranges::copy(parts.layout, std::back_inserter(edits));
  std::ranges::copy(parts.model_edits, std::back_inserter(edits));
  add_dtype_arguments(parts, edits);
  add_encoder_arguments(request.parallel, {}, edits);
  say_whether_rng_is_there(request, parts, edits);
  const bool is_local = request.spec == ModuleSpec::kLocal;
  const ModuleSpec spec = is_local ? ModuleSpec::kLocal : ModuleSpec::kTransformerEngine;
  add_spec_argument(spec, edits);
  for (auto& [name, value] : edits) {
    const auto same = std::find_if(arguments.begin(), arguments.end(),
                                   [&](const auto& argument) { return argument.first == name; });
    if (same == arguments.end()) {
      arguments.emplace_back(name, value);
    } else {
      same->second = value;
    }
  }
  const bool numbered = has_numbered_layers(parts);
  std::string empty = SW_TRY(empty_extra_state());
  complete_extra_states(spec, std::move(empty), parts);
  parts.spec = spec;
  parts.common_state = SW_TRY(new_common_state(arguments, 0, numbered));
  parts.arguments = Arguments(arguments.begin(), arguments.end());
  const RecordedMapping recorded = SW_TRY(mapping_to_record(request, *facts.mapping));
  // What the way back needs to write the same values and scales again.
  const ReleasedQuantisation released = SW_TRY(released_quantisation(model, facts.config_text));
  parts.files.push_back({fmt::format("{}{}", parts.folder, kCarriedKeysFile),
                         write_source_keys(hf, recorded, released)});
  parts.tracker = "0";
  if (!traits_of(request.format).has_run_config) return {};
  std::string run_config = SW_TRY(new_run_config(facts, arguments, notes));
  if (run_config.empty()) return {};
  parts.files.push_back({fmt::format("{}{}", parts.folder, kRunConfigFile), std::move(run_config)});
  return {};
}

}  // namespace shardwright
