// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "format/dcp/dcp_target.h"
#include "format/fsdp_dtensor/fsdp_state.h"
#include "format/fsdp_dtensor/module_pieces.h"
#include "format/rank_modules.h"
#include "layout/expert_names.h"
#include "layout/fsdp_name.h"
#include "layout/layer_name.h"
#include "layout/shard_rule.h"
#include "layout/state_name.h"
#include "plan/slice.h"
#include "state/common_state.h"
#include "state/loss_scale.h"

namespace shardwright {
namespace {

using Role = FsdpName::Role;

// What Adam, Lion, SGD and Muon have. The model is what is trained.
constexpr std::array<std::pair<std::string_view, Role>, 4> kRoles = {{
    {"param", Role::kModel},
    {"exp_avg", Role::kExpAvg},
    {"exp_avg_sq", Role::kExpAvgSq},
    {"momentum_buffer", Role::kMomentum},
}};

using Piece = FsdpPiece;

Result<Piece> classify(DraftTensor tensor, bool& is_main_weight) {
  is_main_weight = false;
  Piece piece{{}, std::move(tensor)};
  const std::string& name = piece.tensor.desc.name;
  piece.name.parameter = name;
  if (!is_optimizer_name(name)) return piece;
  const std::optional<StateName> state = split_state_name(name);
  const auto role = std::ranges::find(kRoles, state ? state->kind : "",
                                      &std::pair<std::string_view, Role>::first);
  if (role != kRoles.end()) {
    piece.name.role = role->second;
    piece.name.parameter = state->tensor;
    is_main_weight = piece.name.role == Role::kModel;
    return piece;
  }
  return fail(Code::kOptimizerUnsupported,
              "tensor {}: found an optimizer state that Megatron-FSDP does not have, expected "
              "param, exp_avg, exp_avg_sq or momentum_buffer; convert without it (--optimizer "
              "drop)",
              name);
}

// A stack of layers becomes its layers.
void split_layers(const Piece& piece, std::vector<Piece>& out) {
  const std::optional<LayerName> layer = split_layer_name(piece.name.parameter);
  if (!layer || layer->index || piece.tensor.desc.shape.empty()) return out.push_back(piece);
  for (std::int64_t index = 0; index < piece.tensor.desc.shape[0]; ++index) {
    Piece one{piece.name, take_row(piece.tensor, index)};
    one.name.parameter = join_layer_name(layer->stack, index, layer->rest);
    out.push_back(std::move(one));
  }
}

// `experts.experts.3.linear_fc1.weight` is expert 3; without a number an axis counts them.
void split_experts(Piece piece, std::vector<Piece>& out) {
  std::string& parameter = piece.name.parameter;
  const std::size_t at = parameter.find(kExpertLinears);
  if (at == std::string::npos) return out.push_back(std::move(piece));
  const char* const digits = parameter.data() + at + kExpertLinears.size();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits, parameter.data() + parameter.size(), number);
  if (error == std::errc() && *end == '.') {
    piece.name.expert = number;
    parameter.erase(at + kExpertLinears.size(), static_cast<std::size_t>(end - digits) + 1);
    piece.canonical = parameter;
    return out.push_back(std::move(piece));
  }
  for (std::int64_t expert = 0; expert < piece.tensor.desc.shape[0]; ++expert) {
    Piece one{piece.name, take_row(piece.tensor, expert), {}, piece.canonical};
    one.name.expert = expert;
    out.push_back(std::move(one));
  }
}

// How many columns the linear_fc2 beside a linear_fc1 has.
using Columns = std::unordered_map<std::string, std::int64_t>;

Columns columns_of_fc2(const std::vector<Piece>& pieces) {
  Columns columns;
  for (const Piece& piece : pieces) {
    const std::size_t at = piece.name.parameter.find("linear_fc2.weight");
    if (at == std::string::npos || piece.tensor.desc.shape.size() != 2) continue;
    columns[piece.name.parameter.substr(0, at)] = piece.tensor.desc.shape[1];
  }
  return columns;
}

void split_halves(Piece piece, const Columns& columns, std::vector<Piece>& out) {
  const std::string& parameter = piece.name.parameter;
  const std::size_t at = parameter.find("linear_fc1.");
  const bool is_linear = parameter.ends_with(".weight") || parameter.ends_with(".bias");
  const auto found = columns.find(parameter.substr(0, std::min(at, parameter.size())));
  const Dims& shape = piece.tensor.desc.shape;
  if (at == std::string::npos || !is_linear || found == columns.end() || shape.empty() ||
      !is_gated(shape[0], found->second)) {
    return out.push_back(std::move(piece));
  }
  const std::int64_t rows = shape[0] / 2;
  Piece gate{piece.name, slice_rows(piece.tensor, 0, rows), {}, piece.canonical};
  gate.name.half = GateHalf::kGate;
  Piece value{piece.name, slice_rows(piece.tensor, rows, rows), {}, piece.canonical};
  value.name.half = GateHalf::kValue;
  out.push_back(std::move(gate));
  out.push_back(std::move(value));
}

PlannerPath path_of(const FsdpName& name, const std::string& text) {
  if (name.role == Role::kModel) return {text, {"model", text.substr(6)}};
  constexpr std::size_t kPrefix = 16;  // "optimizer.state."
  const std::size_t dot = text.rfind('.');
  return {text, {"optimizer", "state", text.substr(kPrefix, dot - kPrefix), text.substr(dot + 1)}};
}

class FsdpEntries {
 public:
  FsdpEntries(const ConvertRequest& request, TargetParts& parts, std::vector<std::string>& notes)
      : request_(request), parts_(parts), notes_(notes) {}

  Status run() {
    std::vector<Piece> pieces = SW_TRY(split());
    std::unordered_set<std::string> with_states;
    std::unordered_set<std::string> with_steps;  // Adam alone counts, which has two moments
    for (const Piece& piece : pieces) {
      if (piece.name.role != Role::kModel) with_states.insert(piece.settings);
      if (piece.name.role == Role::kExpAvgSq) with_steps.insert(step_name(piece.name));
    }
    SW_TRY(check_one_optimizer(pieces));
    std::vector<DraftTensor> tensors;
    std::vector<GroupedParameter> grouped;
    for (const Piece& piece : pieces) {
      if (piece.name.role == Role::kModel) add_group(piece, with_states, grouped);
    }
    SW_TRY(make_objects(grouped));
    for (Piece& piece : pieces) {
      const bool is_first = piece.name.role == Role::kExpAvg;
      if (is_first && with_steps.contains(step_name(piece.name))) {
        tensors.push_back(step_of(piece));
      }
      tensors.push_back(finished(std::move(piece)));
    }
    parts_.tensors = std::move(tensors);
    return {};
  }

 private:
  Result<std::vector<Piece>> split() {
    std::vector<Piece> layers;
    std::unordered_set<std::string> main_weights;
    for (DraftTensor& draft : parts_.tensors) {
      bool is_main_weight = false;
      const Piece piece = SW_TRY(classify(std::move(draft), is_main_weight));
      if (is_main_weight) main_weights.insert(piece.name.parameter);
      if (!is_main_weight && piece.name.role == Role::kModel) weights_.push_back(piece);
      if (is_main_weight || piece.name.role != Role::kModel) split_layers(piece, layers);
    }
    for (const Piece& weight : weights_) {
      if (!main_weights.contains(weight.name.parameter)) split_layers(weight, layers);
    }
    if (!main_weights.empty()) {
      notes_.emplace_back(
          "the optimizer's main weights become the model: Megatron-FSDP has no other");
    }
    SW_TRY(choose_form(layers));
    layers = SW_TRY(put_into_modules(std::move(layers), form_, notes_));
    std::vector<Piece> experts;
    for (Piece& piece : layers) split_experts(std::move(piece), experts);
    const Columns columns = columns_of_fc2(experts);
    std::vector<Piece> halves;
    for (Piece& piece : experts) split_halves(std::move(piece), columns, halves);
    for (Piece& piece : halves) name_for_modules(form_, piece);
    return halves;
  }

  Status choose_form(const std::vector<Piece>& layers) {
    const CommonState state = SW_TRY(CommonState::read(parts_.common_state));
    const std::vector<TensorDesc> model = weights_of(layers);
    const Arguments& arguments = state.arguments();
    const auto impl = arguments.find("transformer_impl");
    const bool is_told = impl != arguments.end() || parts_.spec != ModuleSpec::kKeep;
    const bool is_local = parts_.spec != ModuleSpec::kTransformerEngine && is_told;
    if (!is_told) {
      notes_.emplace_back(
          "nothing says which modules the model has: names are those of Transformer Engine's; "
          "--spec local gives those of Megatron's own");
    }
    form_.names = parts_.versioned_names;
    form_.modules = rank_modules(model, arguments, is_local, form_.names);
    form_.tensor_parallel = request_.parallel.tensor;
    if (!is_of_training_run(arguments)) tell_guessed_names(model);
    return {};
  }

  // A run that looks for other names keeps what its modules begin with, and says nothing.
  void tell_guessed_names(const std::vector<TensorDesc>& model) {
    const auto has = [&](std::string_view part) {
      return std::ranges::any_of(model,
                                 [&](const TensorDesc& desc) { return desc.name.contains(part); });
    };
    if (!form_.names.has_mtp_model_layer && has("mtp.layers.")) {
      notes_.emplace_back(
          "layers for multi-token prediction are called mtp_model_layer inside, as Megatron-FSDP "
          "of Megatron-Core 0.17 to 0.19 stores them; others look for transformer_layer");
    }
    if (form_.names.has_plain_convolution || !has("mixer.conv1d.")) return;
    notes_.push_back(translated(
        "convolutions of Mamba mixers are called {}: Megatron-Core has conv1d_weight since 0.19, "
        "conv1d.weight before",
        form_.modules.plain_convolution ? "conv1d_weight" : "conv1d.weight"));
  }

  // Muon trains beside Adam, as two optimizers.
  static Status check_one_optimizer(const std::vector<Piece>& pieces) {
    const auto first = [&](Role role) {
      return std::ranges::find(pieces, role, [](const Piece& piece) { return piece.name.role; });
    };
    const auto momentum = first(Role::kMomentum);
    const auto moment = first(Role::kExpAvg);
    if (momentum == pieces.end() || moment == pieces.end()) return {};
    return fail(Code::kOptimizerUnsupported,
                "tensors {} and {}: found a momentum_buffer of one and an exp_avg of the other, "
                "expected one optimizer's states: Megatron-FSDP has no second one; convert without "
                "them (--optimizer drop)",
                momentum->name.parameter, moment->name.parameter);
  }

  static void add_group(const Piece& piece, const std::unordered_set<std::string>& with_states,
                        std::vector<GroupedParameter>& grouped) {
    const bool has_states = with_states.contains(piece.settings);
    if (!has_states || piece.name.half == GateHalf::kValue) return;
    grouped.push_back({fsdp_settings_name(piece.name.parameter, std::nullopt),
                       piece.settings,
                       {piece.canonical, piece.tensor.desc.dtype, piece.tensor.desc.shape}});
  }

  static std::string step_name(const FsdpName& of) {
    FsdpName name = of;
    name.role = Role::kStep;
    return join_fsdp_name(name);
  }

  DraftTensor step_of(const Piece& of) {
    FsdpName name = of.name;
    name.role = Role::kStep;
    const std::string text = step_name(of.name);
    parts_.planner_paths.push_back(path_of(name, text));
    const auto own = steps_.find(fsdp_settings_name(of.name.parameter, std::nullopt));
    const std::int64_t step = own == steps_.end() ? step_ : own->second;
    return {{text, DType::kF32, {}}, {{}, static_cast<double>(step), 0.0}, std::nullopt};
  }

  DraftTensor finished(Piece piece) {
    TensorDesc& desc = piece.tensor.desc;
    desc.name = join_fsdp_name(piece.name);
    const bool keeps_dtype = request_.dtype || parts_.weights_are_main;
    if (is_castable_float(desc.dtype) && !keeps_dtype) desc.dtype = DType::kF32;
    parts_.planner_paths.push_back(path_of(piece.name, desc.name));
    return std::move(piece.tensor);
  }

  Status make_objects(const std::vector<GroupedParameter>& grouped) {
    parts_.new_objects.clear();
    const bool has_own = SW_TRY(copy_settings(grouped));
    const SplitState state = SW_TRY(split_common_state(
        parts_.common_state, has_own ? std::vector<GroupedParameter>() : grouped));
    step_ = state.step;
    steps_ = state.steps;
    if (has_own && state.steps_differ) {
      notes_.push_back(translated("parameters differ in their steps: {} is kept", step_));
    }
    if (state.drops_loss_scale) notes_.emplace_back(kLossScaleNote);
    for (const StateEntry& entry : state.entries) {
      parts_.new_objects.emplace_back(entry.name, std::make_shared<const std::string>(entry.bytes));
      parts_.planner_paths.push_back({entry.name, {entry.path.begin(), entry.path.end()}});
    }
    notes_.emplace_back(
        "extra states and RNG states are left out: start the job with --no-load-rng, and "
        "Megatron-FSDP makes its own");
    parts_.files.push_back({"latest_checkpointed_iteration.txt", parts_.tracker});
    return {};
  }

  // A source of this format says of each parameter which settings it has, whatever the rule is by
  // which they were chosen. Whether it does.
  Result<bool> copy_settings(const std::vector<GroupedParameter>& grouped) {
    std::multimap<std::string, StoredObject, std::less<>> settings;
    for (const StoredObject& object : parts_.copied_objects) {
      const auto entry = split_fsdp_group_entry(object.name);
      if (entry) settings.emplace(fsdp_settings_of(*entry).front(), object);
    }
    parts_.copied_objects.clear();
    if (settings.empty()) return false;
    for (const GroupedParameter& parameter : grouped) {
      const auto [begin, end] = settings.equal_range(parameter.source);
      if (begin == end) return lacks_settings(parameter.desc.name, parameter.source);
      for (auto setting = begin; setting != end; ++setting) {
        StoredObject object = setting->second;
        const std::string key(split_fsdp_group_entry(object.name)->key);
        object.name = parameter.name + "." + key;
        const std::vector<std::string> path = path_of_setting(parameter.name, key);
        parts_.planner_paths.push_back({object.name, {path.begin(), path.end()}});
        parts_.copied_objects.push_back(std::move(object));
      }
    }
    return true;
  }

  const ConvertRequest& request_;
  TargetParts& parts_;
  std::vector<std::string>& notes_;
  std::vector<Piece> weights_;
  ModuleForm form_;
  std::int64_t step_ = 0;
  std::map<std::string, std::int64_t, std::less<>> steps_;  // of parameters that have their own
};

class FsdpTarget : public Target {
 public:
  FsdpTarget()
      : Target({.name = "fsdp_dtensor",
                .names = TargetNames::kMegatron,
                .keeps_optimizer = true,
                .has_grid = true,
                .has_shards = true,
                .has_layers_apart = true,
                .has_masters_for_model = true,
                .holds_extras = false,
                .backend = "fsdp_dtensor",
                .hf_folder = "iter_0000000/hf/"}) {}

  Status make_entries(const ConvertRequest& request, TargetParts& parts,
                      std::vector<std::string>& notes) const override {
    if (request.parallel.pipeline > 1) {
      return fail(
          Code::kUsage,
          "--pp {} does not apply to --to fsdp_dtensor: Megatron-FSDP numbers the layers of "
          "each pipeline stage alike and loses them; leave it out",
          request.parallel.pipeline);
    }
    return FsdpEntries(request, parts, notes).run();
  }

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    return plan_dcp(parts, request, /*with_empty=*/false, plan);
  }
};

}  // namespace

const Target& fsdp_dtensor_target() {
  static const FsdpTarget target;
  return target;
}

}  // namespace shardwright
