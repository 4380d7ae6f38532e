// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "convert/attention_heads.h"
#include "convert/component_table.h"
#include "convert/constants.h"
#include "convert/copies.h"
#include "convert/correspond.h"
#include "convert/correspondence_notes.h"
#include "convert/dcp_target.h"
#include "convert/dequantise.h"
#include "convert/exact_values.h"
#include "convert/families.h"
#include "convert/flat_states.h"
#include "convert/fsdp_source.h"
#include "convert/fsdp_target.h"
#include "convert/hf_target.h"
#include "convert/layer_numbering.h"
#include "convert/master_weights.h"
#include "convert/megatron_target.h"
#include "convert/mimo_optimizer.h"
#include "convert/mimo_source.h"
#include "convert/model_facts.h"
#include "convert/prediction_layers.h"
#include "convert/prediction_source.h"
#include "convert/renames.h"
#include "convert/replicas.h"
#include "convert/select.h"
#include "convert/unfold.h"
#include "format/legacy_states.h"
#include "format/torch_items.h"
#include "layout/layer_name.h"
#include "layout/piece_limit.h"
#include "layout/tower.h"
#include "model/apply.h"
#include "model/mapping_report.h"
#include "plan/canonical.h"
#include "shardwright/convert.h"

namespace shardwright {
namespace {

std::vector<TensorDesc> descs_of(const std::vector<CanonicalTensor>& tensors) {
  std::vector<TensorDesc> descs;
  for (const CanonicalTensor& tensor : tensors) descs.push_back(tensor.desc);
  return descs;
}

// One preparation, step by step. `catalog_` is what of the source is wanted.
class Preparation {
 public:
  explicit Preparation(const ConvertRequest& request) { result_.request = request; }

  Result<PreparedConversion> run() {
    result_.source = SW_TRY(open_checkpoint(request().input));
    for (const std::string& note : source().notes) tell(note);
    SW_TRY(begin_mimo());
    SW_TRY(check_prediction_source(request(), keeps_names(), is_from_hf()));
    SW_TRY(read_optimizer());
    catalog_ = SW_TRY(select_entries(result_.source.catalog, request(), result_.notes));
    if (catalog_.tensors.empty()) {
      return fail(Code::kUsage, "{}: nothing is left to convert", request().input);
    }
    for (std::string& note : SW_TRY(locate_items(catalog_, *source().files))) tell(note);
    SW_TRY(undo_flat());
    SW_TRY(tell_proof());
    if (!keeps_names() && is_fsdp(source())) {
      SW_TRY(undo_fsdp(request(), result_.source, catalog_, result_.notes));
    }
    SW_TRY(drop_prediction_layers());
    const ReplicaReport replicas = cost_of_replicas(catalog_, request().check_replicas);
    result_.replicas = {replicas.compared, replicas.bytes};
    SW_TRY(make_drafts());
    SW_TRY(check_heads());
    if (is_to_fsdp()) SW_TRY(make_fsdp_entries(request(), parts_, result_.notes));
    result_.renames = renames_of(parts_.tensors, result_.plan.quantised, catalog_, stored_names_);
    result_.plan.source = std::move(catalog_);
    result_.plan.source.objects.clear();  // the target's parts name the ones that go along
    if (request().format == TargetFormat::kTorchDist) {
      const PlacedParts placed = SW_TRY(place_parts(parts_, request().parallel));
      SW_TRY(plan_torch_dist(parts_, placed, result_.plan));
    } else if (is_to_mimo()) {
      SW_TRY(plan_mimo());
    } else if (request().format == TargetFormat::kLegacy) {
      SW_TRY(plan_legacy(parts_, request(), result_.plan));
    } else if (is_to_dcp()) {
      SW_TRY(plan_dcp(parts_, request(), result_.plan));
    } else {
      SW_TRY(plan_safetensors(parts_, request().max_shard_bytes, result_.plan));
    }
    SW_TRY(check_plan(result_.plan));
    return std::move(result_);
  }

 private:
  [[nodiscard]] const ConvertRequest& request() const { return result_.request; }
  [[nodiscard]] const Checkpoint& source() const { return result_.source; }
  [[nodiscard]] bool is_from_hf() const { return source().location.container == Container::kHf; }
  [[nodiscard]] bool is_to_legacy() const { return request().format == TargetFormat::kLegacy; }
  [[nodiscard]] bool is_to_mimo() const { return request().format == TargetFormat::kMimo; }
  [[nodiscard]] bool is_from_legacy() const {
    return source().location.container == Container::kLegacy;
  }

  [[nodiscard]] bool is_to_fsdp() const { return request().format == TargetFormat::kFsdpDtensor; }
  [[nodiscard]] bool is_to_dcp() const {
    return is_to_fsdp() || request().format == TargetFormat::kDcp;
  }

  [[nodiscard]] bool keeps_names() const {
    return request().format == TargetFormat::kSafetensors || request().format == TargetFormat::kDcp;
  }

  // Everything in between works on an ordinary Megatron model: names of a MIMO source become that
  // model's, and the names of a MIMO target are given when its tensors are placed.
  Status begin_mimo() {
    Checkpoint& checkpoint = result_.source;
    is_from_mimo_ = is_mimo(checkpoint.catalog) && !keeps_names();
    if (is_from_mimo_) {
      SW_TRY(load());
      if (request().optimizer == OptimizerPolicy::kKeep) {
        SW_TRY(check_component_states(checkpoint.catalog));
        if (!is_to_mimo()) SW_TRY(join_optimizers(checkpoint, result_.notes));
      }
      Wrappers wrappers =
          SW_TRY(to_standard_names(mappings_, request().family, checkpoint.catalog));
      if (request().optimizer == OptimizerPolicy::kDefault) {
        result_.request.optimizer = OptimizerPolicy::kDrop;
      }
      // Who goes on with training has the wrappers that it had.
      if (keeps_optimizer(request())) parts_.wrappers = std::move(wrappers);
    }
    if (!is_to_mimo()) return {};
    layout_ = SW_TRY(solve_component_layout(request().components, request().world_size));
    const Component& language = *layout_.find("language");
    result_.request.parallel = {language.tensor, language.pipeline, 1, language.expert,
                                language.expert_tensor};
    return {};
  }

  // The families' files, once.
  Status load() {
    if (mappings_.empty()) mappings_ = SW_TRY(load_mappings(request()));
    return {};
  }

  void tell(std::string note) { result_.notes.push_back(std::move(note)); }

  // Of a Megatron source's family: its names alone don't tell which encoder they are.
  Status find_routes() {
    if (!is_to_mimo()) return {};
    SW_TRY(load());
    const std::vector<TensorDesc> descs = descs_of(canonical_tensors(catalog_));
    const ModelFacts facts =
        SW_TRY(find_model_facts(request(), source(), mappings_, descs, result_.notes));
    result_.family = facts.mapping->family;
    SW_TRY(unfold_convolutions(facts, catalog_));
    routes_ = facts.mapping->components;
    return check_components(result_.family, routes_, layout_);
  }

  // Of an ordinary Megatron model's tensor.
  [[nodiscard]] std::int64_t tensor_ranks_of(std::string_view name) const {
    const ComponentRoute* route = is_to_mimo() ? route_of(routes_, name) : nullptr;
    return route == nullptr ? tensor_size_of(name, request().parallel)
                            : layout_.find(route->name)->tensor;
  }

  Status plan_mimo() {
    for (const Component& c : layout_.components) {
      const auto route = std::ranges::find(routes_, c.name, &ComponentRoute::name);
      const ComponentSpec spec{c.name,    c.tensor, c.pipeline,      c.data,
                               c.context, c.expert, c.expert_tensor, c.rank_offset};
      result_.components.push_back({spec, route->path});
    }
    parts_.files.push_back({parts_.folder + std::string(kComponentTable),
                            write_component_table(result_.components, layout_.world)});
    if (!is_from_mimo_) SW_TRY(share_optimizer(routes_, parts_, result_.notes));
    const PlacedParts placed = SW_TRY(place_components(parts_, layout_, routes_));
    return plan_torch_dist(parts_, placed, result_.plan);
  }

  [[nodiscard]] bool drops_prediction_layers() const {
    const MtpPolicy policy = request().mtp;
    return policy == MtpPolicy::kDrop || (policy == MtpPolicy::kDefault && is_to_mimo());
  }

  // Of an HF source: what the family makes such layers of.
  Status drop_prediction_layers_of_hf(const ModelFacts& facts) {
    if (!drops_prediction_layers()) return {};
    const ModelTensors model = SW_TRY(model_tensors(catalog_, facts.config_text));
    const Correspondence all = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, model.tensors));
    const std::vector<std::string> names = prediction_tensors(all);
    if (names.empty()) return {};
    const std::vector<std::string> stored = stored_names(model, catalog_, names);
    erase_tensors(stored, catalog_);
    erase_tensors(stored, result_.source.catalog);
    result_.notes.push_back(dropped_note(names));
    return {};
  }

  // Of a Megatron source, by its own names.
  Status drop_prediction_layers() {
    if (!drops_prediction_layers()) return {};
    if (is_from_hf()) {
      if (!keeps_names() && request().format != TargetFormat::kHf)
        return {};  // once its family is known
      return fail(Code::kUsage,
                  "--mtp drop: found a Hugging Face model that keeps its names, expected a target "
                  "that its family is needed for; --exclude leaves tensors out by name");
    }
    const std::vector<std::string> names = erase_prediction_layers(catalog_);
    if (!names.empty()) tell(dropped_note(names));
    return {};
  }

  // That of legacy files is found only when it is wanted: its pickles are large.
  Status read_optimizer() {
    if (!source().has_unread_optimizer) return {};
    if (!keeps_optimizer(request())) {
      tell("optimizer state is dropped");
      return {};
    }
    const std::size_t told = source().notes.size();
    SW_TRY(read_legacy_optimizer(result_.source));
    for (std::size_t i = told; i < source().notes.size(); ++i) tell(source().notes[i]);
    result_.checks_master_weights = true;
    return {};
  }

  // Whoever keeps names keeps states as they are.
  Status undo_flat() {
    if (keeps_names() || is_fsdp(source()) || !has_flat_states(catalog_)) return {};
    if (is_from_mimo_) return refuse_flat_states(request().input);
    SW_TRY(undo_flat_states(result_.source, catalog_));
    result_.checks_master_weights = true;
    return {};
  }

  // Rules may be wrong, so what they say is proven; where it can't be, that is said.
  Status tell_proof() {
    if (!result_.checks_master_weights) return {};
    tell(
        "whose each optimizer state is follows from Megatron's rules; before anything is written, "
        "every master weight is compared with its weight");
    const MasterWeightCheck check = SW_TRY(plan_master_weights(catalog_));
    result_.master_weight_bytes = check.bytes;
    const std::vector<std::string>& unproven = check.unproven;
    if (unproven.empty()) return {};
    tell(fmt::format(
        "{} parameters, {} the first, are float32 and have no master weight apart: nothing proves "
        "whose their states are but shapes, groups and order",
        unproven.size(), unproven.front()));
    return {};
  }

  Status make_drafts() {
    if (request().format == TargetFormat::kSafetensors) return draft_own_names();
    if (request().format == TargetFormat::kDcp) {
      return draft_dcp(request(), source(), catalog_, parts_, result_.notes);
    }
    if (request().format == TargetFormat::kHf) {
      return is_from_hf() ? draft_hf_from_hf() : draft_hf_from_megatron();
    }
    return is_from_hf() ? draft_megatron_from_hf() : draft_megatron_from_megatron();
  }

  // A torch_dist checkpoint can be loaded with another TP than it was cut for; rank files and ranks
  // of components can't.
  Status check_heads() {
    Status status =
        check_attention_heads(parts_.tensors, parts_.arguments,
                              [this](std::string_view name) { return tensor_ranks_of(name); });
    if (status || is_to_legacy() || is_to_mimo()) return status;
    tell(status.error().message + "; what is written loads with such a size only");
    return {};
  }

  Status draft_own_names() {
    parts_.tensors = draft_identity(catalog_, {request().dtype, LayerKeys::kAutomatic});
    const std::size_t objects = catalog_.objects.size();
    if (objects > 0) {
      result_.notes.push_back(
          fmt::format("{} opaque entries are left out: safetensors holds tensors only", objects));
    }
    return {};
  }

  // The source's tensors, and its config.json, become those of a model that has the layers.
  Status take_prediction_layers_into_hf(const ModelFacts& facts) {
    const ModelTensors model = SW_TRY(model_tensors(catalog_, facts.config_text));
    const Correspondence all = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, model.tensors));
    const std::vector<std::string> own = prediction_tensors(all);
    if (!own.empty()) return refuse_own_layers(request(), own[0]);
    const PredictionSource from = SW_TRY(open_prediction_source(request(), mappings_, facts));
    add_prediction_tensors(from.tensors, from, result_.source, catalog_);
    tell(taken_note(from));
    result_.more_sources.push_back(request().mtp_from);
    std::string& config = result_.source.hf_config;
    const std::string edited = SW_TRY(with_prediction_numbers(config, from.checkpoint.hf_config));
    if (edited == config) return {};
    config = edited;
    std::erase_if(result_.source.artifacts,
                  [](const auto& artifact) { return artifact.first == "config.json"; });
    const std::string folder = request().format == TargetFormat::kHf ? "" : "iter_0000000/hf/";
    parts_.files.push_back({folder + "config.json", edited});
    return {};
  }

  Status take_prediction_layers_to_hf(ModelFacts& facts) {
    for (const StoredTensor& tensor : catalog_.tensors) {
      const std::string& name = tensor.desc.name;
      if (is_prediction_layer(name)) return refuse_own_layers(request(), name);
    }
    const PredictionSource from = SW_TRY(open_prediction_source(request(), mappings_, facts));
    add_prediction_tensors(from.tensors, from, result_.source, catalog_);
    std::ranges::move(draft_prediction_layers(
                          from, catalog_, {request().dtype, LayerKeys::kAutomatic}, parts_.tensors),
                      std::back_inserter(parts_.tensors));
    tell(taken_note(from));
    result_.more_sources.push_back(request().mtp_from);
    facts.has_prediction_layers = true;
    const std::string edited =
        SW_TRY(with_prediction_numbers(facts.config_text, from.checkpoint.hf_config));
    facts.config_is_ours = facts.config_is_ours || edited != facts.config_text;
    facts.config_text = edited;
    return {};
  }

  // As it is, scales included; another dtype is another model, in which nothing is quantised.
  Status draft_hf_from_hf() {
    if (!request().mtp_from.empty()) {
      SW_TRY(load());
      const ModelFacts facts = SW_TRY(facts_of_hf());
      SW_TRY(take_prediction_layers_into_hf(facts));
    }
    if (!request().dtype) {
      parts_.tensors = draft_identity(catalog_, {});
      return finish_hf(request(), source(), nullptr, parts_, result_.notes);
    }
    const ModelTensors model = SW_TRY(model_tensors(catalog_, source().hf_config));
    take_apart(model);
    parts_.tensors = draft_identity(catalog_, {request().dtype, LayerKeys::kAutomatic});
    keep_model_tensors(model, *request().dtype, parts_.tensors);
    return finish_hf(request(), source(), nullptr, parts_, result_.notes);
  }

  // From here on the catalog has the names and shapes of the model.
  void take_apart(const ModelTensors& model) {
    tell_quantised(model, request().dtype.value_or(DType::kBF16), result_.notes);
    for (const StoredTensor& tensor : catalog_.tensors) stored_names_.push_back(tensor.desc.name);
    declare_quantised(model, catalog_, result_.plan.quantised);
  }

  Status draft_megatron_from_megatron() {
    if (!has_megatron_names(catalog_)) {
      return fail(Code::kNoFamily,
                  "{}: found no Megatron tensor names, expected decoder.* or embedding.*; "
                  "--to safetensors keeps any names",
                  request().input);
    }
    SW_TRY(find_routes());
    parts_.tensors = draft_identity(catalog_, {request().dtype, LayerKeys::kAutomatic});
    if (is_to_legacy()) {
      SW_TRY(check_piece_count(descs_of(catalog_)));
      parts_.tensors = draft_layers(catalog_, {request().dtype, LayerKeys::kAllNumbered});
    } else if (is_from_legacy() || is_fsdp(source())) {
      parts_.tensors = stack_layers(std::move(parts_.tensors), layer_keys_of(source().arguments));
    }
    leave_out_hf_extras();
    name_for_spec(request().spec, parts_.tensors);
    SW_TRY(finish_from_megatron(request(), source(), catalog_, parts_, result_.notes));
    if (is_to_legacy() && parts_.spec == ModuleSpec::kKeep && source().arguments.empty()) {
      result_.notes.emplace_back(
          "nothing says which modules the model has: names are those of Megatron's local ones; "
          "--spec te gives those of Transformer Engine");
    }
    for (const auto& [name, object] : source().artifacts) {
      parts_.artifacts.emplace_back(parts_.folder + "hf/" + name, object);
    }
    if (!source().source_keys.empty()) {
      parts_.files.push_back({parts_.folder + "hf/source_keys.json", source().source_keys});
    }
    for (const auto& [name, object] : source().companions) {
      parts_.artifacts.emplace_back(parts_.folder + name, object);
    }
    return {};
  }

  Status draft_megatron_from_hf() {
    SW_TRY(load());
    ModelFacts facts = SW_TRY(facts_of_hf());
    result_.family = facts.mapping->family;
    if (!request().mtp_from.empty()) {
      SW_TRY(take_prediction_layers_into_hf(facts));
      facts = SW_TRY(facts_of_hf());
    }
    SW_TRY(drop_prediction_layers_of_hf(facts));
    const ModelTensors all = SW_TRY(model_tensors(source().catalog, facts.config_text));
    const ModelTensors model = SW_TRY(model_tensors(catalog_, facts.config_text));
    take_apart(model);
    if (is_to_mimo()) {
      routes_ = facts.mapping->components;
      SW_TRY(check_components(result_.family, routes_, layout_));
    }
    correspondence_ =
        SW_TRY(correspond_from_hf(facts, model, catalog_, *source().files, result_.notes));
    if (!is_to_legacy()) tell_kept(correspondence_, result_.notes);
    parts_.tensors = SW_TRY(draft_from_hf(
        correspondence_, catalog_,
        {request().dtype, is_to_legacy() ? LayerKeys::kAllNumbered : layer_keys_of(facts)}));
    std::vector<DraftTensor> exact = SW_TRY(keep_exact_values(
        correspondence_, catalog_, parts_.tensors, *source().files, result_.notes));
    std::ranges::move(exact, std::back_inserter(parts_.tensors));
    leave_out_hf_extras();
    name_for_spec(request().spec, parts_.tensors);
    SW_TRY(finish_from_hf(request(), all.tensors, facts, parts_, result_.notes));
    for (const auto& [name, object] : source().artifacts) {
      parts_.artifacts.emplace_back(parts_.folder + "hf/" + name, object);
    }
    return {};
  }

  // A Megatron model that loads strictly has no place for what Hugging Face stores beyond it, and a
  // legacy file no other.
  void leave_out_hf_extras() {
    if (!is_to_legacy() && !is_to_fsdp()) return;
    std::erase_if(parts_.tensors, [&](const DraftTensor& tensor) {
      if (!tensor.desc.name.starts_with(kHfExtraPrefix)) return false;
      result_.notes.push_back(fmt::format("{} is left out: the target has no place for it",
                                          tensor.desc.name.substr(kHfExtraPrefix.size())));
      return true;
    });
  }

  // Where no mapping speaks of the model, the message says which one nearly fits.
  Result<ModelFacts> facts_of_hf() {
    Result<ModelFacts> facts = find_model_facts(request(), source(), mappings_, {}, result_.notes);
    if (facts || facts.error().code != Code::kNoFamily || source().hf_config.empty()) return facts;
    const HfConfig config = SW_TRY(read_hf_config(source().hf_config));
    const ModelTensors model = SW_TRY(model_tensors(source().catalog, source().hf_config));
    const std::string nearest = nearest_family(mappings_, config, model.tensors);
    if (nearest.empty()) return facts;
    if (names_one_of(config, mappings_)) {  // of which this is a variant that is not known
      return fail(Code::kNoFamily, "{}; {}", facts.error().message, nearest);
    }
    return fail(Code::kNoFamily,
                "config.json: found architecture '{}', expected one that 'shardwright map list' "
                "shows; {}; a mapping file of your own (--map) can extend that family: "
                "docs/mapping.md says how, 'shardwright map check' tries it",
                fmt::join(config.architectures, ", "), nearest);
  }

  Status draft_hf_from_megatron() {
    SW_TRY(load());
    SW_TRY(check_piece_count(descs_of(catalog_)));
    ModelFacts facts = SW_TRY(find_model_facts(
        request(), source(), mappings_, descs_of(canonical_tensors(catalog_)), result_.notes));
    result_.family = facts.mapping->family;
    SW_TRY(unfold_convolutions(facts, catalog_));
    const std::vector<CanonicalTensor> canonical = canonical_tensors(catalog_);
    const std::vector<TensorDesc> descs = descs_of(canonical);
    const std::vector<TensorDesc> keys = SW_TRY(wanted_keys(source()));
    correspondence_ = SW_TRY(correspond_from_megatron(facts, descs, keys));
    SW_TRY(check_constants(correspondence_, canonical, catalog_, *source().files));
    parts_.tensors =
        SW_TRY(draft_to_hf(correspondence_, canonical, {request().dtype, LayerKeys::kAutomatic}));
    tell_rounded(correspondence_, result_.notes);
    SW_TRY(restore_exact_values(correspondence_, canonical, catalog_, parts_.tensors,
                                *source().files, result_.notes));
    draft_copies(correspondence_.copies, parts_.tensors);
    if (!request().mtp_from.empty()) SW_TRY(take_prediction_layers_to_hf(facts));
    order_like(keys, parts_.tensors);
    return finish_hf(request(), source(), &facts, parts_, result_.notes);
  }

  PreparedConversion result_;
  Catalog catalog_;
  std::vector<Mapping> mappings_;
  std::vector<std::string> stored_names_;  // of its tensors, where the model has others
  Correspondence correspondence_;
  bool is_from_mimo_ = false;  // and its names become an ordinary model's
  ComponentLayout layout_;     // of a MIMO target
  std::vector<ComponentRoute> routes_;
  TargetParts parts_;
};

}  // namespace

Result<PreparedConversion> prepare_conversion(const ConvertRequest& request) {
  return Preparation(request).run();
}

}  // namespace shardwright
