// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_target.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "format/legacy/legacy_layout.h"
#include "format/rank_modules.h"
#include "layout/extra_state.h"
#include "layout/layer_name.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_shards.h"
#include "layout/module_order.h"
#include "layout/placement.h"
#include "layout/state_name.h"
#include "layout/tower.h"
#include "plan/canonical.h"
#include "plan/view_index.h"
#include "state/common_state.h"

namespace shardwright {
namespace {

// A piece of `recipe` as part of another tensor: what lies in `box`, put at row `row` of a tensor
// that lacks the box's first `dropped` axes.
void append_piece(const TensorRecipe& recipe, const ViewIndex& index, const Box& box, int dropped,
                  std::int64_t row, TensorRecipe& target) {
  target.fill = recipe.fill;
  target.add = recipe.add;
  std::vector<std::uint32_t> found;
  index.find(box, found);
  for (const std::uint32_t number : found) {
    const TensorView view = recipe.views[number];
    const std::optional<Box> common = intersect(view.box, box);
    if (!common) continue;
    TensorView piece{{}, view.source, view.source_origin, {}, {}};
    for (int axis = 0; axis < box.axes(); ++axis) {
      const std::int64_t moved = common->origin[axis] - view.box.origin[axis];
      const std::int64_t s = view.axis[axis];
      if (s >= 0) piece.source_origin[static_cast<int>(s)] += moved * view.step[axis];
      if (axis < dropped) continue;
      const std::int64_t first = common->origin[axis] - box.origin[axis];
      piece.box.origin.push_back(axis == dropped ? row + first : first);
      piece.box.shape.push_back(common->shape[axis]);
      piece.axis.push_back(s);
      piece.step.push_back(view.step[axis]);
    }
    target.views.push_back(piece);
  }
}

// The module of a parameter of a rank's state dict.
std::string module_of(std::string_view name) {
  return std::string(name.substr(0, name.rfind('.')));
}

// What the modules of a state dict keep beside their parameters. A module's state follows its
// parameters, as torch orders them.
class ExtraStates {
 public:
  ExtraStates(const std::vector<LegacyShard>& shards, bool is_local, bool final_norm_has_state)
      : is_local_(is_local), final_norm_has_state_(final_norm_has_state) {
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::string module = module_of(shards[i].desc.name);
      first_.emplace(module, i);
      last_[module] = i;
    }
  }

  // In front of the i-th tensor: that of an attention, which has no parameters and comes first.
  void append_before(const std::string& name, std::size_t i, LegacyStateDict& dict) const {
    const std::string module = module_of(name);
    if (is_local_ || first_.at(module) != i || !module.ends_with(".self_attention.linear_proj")) {
      return;
    }
    dict.push_back({module_of(module) + ".core_attention._extra_state",
                    LegacyEntry::Kind::kTensor,
                    DType::kU8,
                    {0}});
  }

  // Behind the i-th tensor.
  void append(const std::string& name, std::size_t i, LegacyStateDict& dict) const {
    const std::string module = module_of(name);
    if (last_.at(module) != i) return;
    using Kind = LegacyEntry::Kind;
    if (module == "output_layer" || module.ends_with(".output_layer")) {
      dict.push_back({module + "._extra_state", Kind::kNone, DType::kU8, {}});
      return;
    }
    const std::string_view leaf = std::string_view(module).substr(module.rfind('.') + 1);
    if (is_local_) {
      if (leaf.starts_with("linear_") || leaf == "eh_proj") {
        dict.push_back({module + "._extra_state", Kind::kNone, DType::kU8, {}});
      } else if (final_norm_has_state_ && module.ends_with("decoder.final_layernorm")) {
        dict.push_back({module + "._extra_state", Kind::kTensor, DType::kU8, {0}});
      }
      return;
    }
    if (!has_extra_state(module, ModuleSpec::kTransformerEngine)) return;
    dict.push_back({module + "._extra_state", Kind::kTensor, DType::kU8, {0}});
  }

 private:
  bool is_local_;
  bool final_norm_has_state_;
  std::unordered_map<std::string, std::size_t> first_;
  std::unordered_map<std::string, std::size_t> last_;
};

// nullopt for what Adam has not.
std::optional<OptimizerStorage::Kind> kind_of(const StateName& state) {
  using Kind = OptimizerStorage::Kind;
  constexpr std::array kKinds = {Kind::kMaster, Kind::kExpAvg, Kind::kExpAvgSq};
  const auto kind = std::ranges::find(kStateKinds, state.kind);
  if (kind == kStateKinds.end()) return std::nullopt;
  return kKinds[static_cast<std::size_t>(kind - kStateKinds.begin())];
}

class LegacyPlanner {
 public:
  LegacyPlanner(const TargetParts& parts, const ConvertRequest& request, Plan& plan)
      : parts_(parts), request_(request), config_(request.parallel), plan_(plan) {
    views_.reserve(parts.tensors.size());
    for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
      const DraftTensor& draft = parts.tensors[i];
      views_.emplace_back(draft.recipe.views, draft.desc.shape.size());
      if (is_optimizer_name(draft.desc.name)) continue;
      by_name_.emplace(draft.desc.name, descs_.size());
      descs_.push_back(draft.desc);
      drafts_.push_back(i);
      has_mtp_ = has_mtp_ || is_prediction_layer(draft.desc.name);
      is_tied_ = is_tied_ && !draft.desc.name.ends_with("output_layer.weight");
    }
  }

  Status run() {
    SW_TRY(find_states());
    const std::vector<LegacyRank> ranks = SW_TRY(legacy_grid(config_));
    const Placement placement = SW_TRY(Placement::make(descs_, config_));
    for (const TensorDesc& desc : descs_) SW_TRY(placement.place(desc));  // all of them divide
    SW_TRY(choose_modules());
    const std::int64_t layers = count_main_layers(descs_);
    std::set<std::int64_t> seen;
    for (const LegacyRank& rank : ranks) {
      const std::size_t before = plan_.target.tensors.size();
      SW_TRY(add_rank(rank, layers));
      if (!seen.insert(rank.pipeline).second) continue;
      // The other ranks of the stage hold as many: lists that double would hold them twice.
      const auto of_stage =
          static_cast<std::size_t>(std::ranges::count(ranks, rank.pipeline, &LegacyRank::pipeline));
      expected_ += (plan_.target.tensors.size() - before) * of_stage;
      plan_.target.tensors.reserve(expected_);
      plan_.tensors.reserve(expected_);
    }
    return {};
  }

 private:
  // Which draft is which state of which weight.
  Status find_states() {
    for (std::size_t i = 0; i < parts_.tensors.size(); ++i) {
      const std::string& name = parts_.tensors[i].desc.name;
      if (!is_optimizer_name(name)) continue;
      const auto state = split_state_name(name);
      const auto kind = state ? kind_of(*state) : std::nullopt;
      const auto weight = by_name_.find(kind ? state->tensor : std::string_view());
      if (weight == by_name_.end()) {
        return fail(Code::kOptimizerUnsupported,
                    "tensor {}: found a state that Adam has not or a weight that is not there, "
                    "expected param, exp_avg and exp_avg_sq; convert without (--optimizer drop)",
                    name);
      }
      if (states_.emplace(std::pair(weight->second, *kind), i).second) continue;
      return fail(Code::kDuplicateName, "tensor {}: found this state of {} under another name too",
                  name, state->tensor);
    }
    is_mixed_ = std::ranges::any_of(descs_, [](const TensorDesc& desc) {
      return desc.dtype == DType::kBF16 || desc.dtype == DType::kF16;
    });
    return {};
  }

  Status choose_modules() {
    const CommonState state = SW_TRY(CommonState::read(parts_.common_state));
    SW_TRY(check_encoders());
    is_local_ = parts_.spec != ModuleSpec::kTransformerEngine;
    modules_ = rank_modules(descs_, state.arguments(), is_local_);
    return {};
  }

  [[nodiscard]] Status check_encoders() const {
    if (config_.encoder_tensor == 0) return {};
    const bool has_encoder = std::ranges::any_of(
        descs_, [](const TensorDesc& desc) { return !tower_of(desc.name).empty(); });
    if (has_encoder) return {};
    return fail(
        Code::kUsage,
        "--encoder-tp {}: this model is a language model alone and has no encoder; leave it "
        "out",
        config_.encoder_tensor);
  }

  Status add_rank(const LegacyRank& rank, std::int64_t layers) {
    const std::vector<StageContents> stages =
        SW_TRY(stage_contents(config_, rank.pipeline, layers, has_mtp_, is_tied_));
    std::vector<LegacyStateDict> dicts;
    std::vector<LegacyShard> trained;
    std::vector<StoredTensor> tensors;
    std::vector<TensorRecipe> recipes;
    for (const StageContents& stage : stages) {
      std::vector<LegacyShard> shards = ordered_shards(rank, stage);
      dicts.push_back(make_dict(shards, stage));
      SW_TRY(add_tensors(shards, dicts.back(), tensors, recipes));
      std::erase_if(shards, [](const LegacyShard& shard) {
        return !is_parameter(shard.desc.name, shard.desc.dtype);
      });
      if (!states_.empty()) SW_TRY(check_order(shards));
      std::ranges::move(shards, std::back_inserter(trained));
    }
    LegacyTrained optimizer{{}, is_mixed_};
    for (const LegacyShard& shard : trained) optimizer.parameters.push_back(shard.desc);
    const LegacyFileLayout layout = SW_TRY(layout_legacy_file(
        parts_.common_state, writer_of(rank), dicts, states_.empty() ? nullptr : &optimizer));
    for (const OptimizerStorage& storage : layout.optimizer) {
      SW_TRY(add_state(trained[storage.parameter], storage, tensors, recipes));
    }
    const RankNaming naming =
        request_.names_all_coordinates ? RankNaming::kTpPpEp : RankNaming::kMegatron;
    const std::string folder = rank_folder_name(rank, config_, naming);
    add_file(fmt::format("{}{}/{}", parts_.folder, folder, kLegacyFileName), folder, layout,
             std::move(tensors), std::move(recipes));
    return {};
  }

  // The first of the ranks that this folder is for, in Megatron's order of them.
  [[nodiscard]] LegacyWriter writer_of(const LegacyRank& rank) const {
    const std::int64_t stage = std::lcm(config_.tensor, config_.expert_tensor * config_.expert);
    LegacyWriter writer{0, stage * config_.pipeline, stage / config_.tensor};
    while (writer.rank % config_.tensor != rank.tensor ||
           writer.rank / config_.expert_tensor % config_.expert != rank.expert) {
      ++writer.rank;
    }
    writer.rank += stage * rank.pipeline;
    return writer;
  }

  // As torch lists the parameters of the rank's modules.
  [[nodiscard]] std::vector<LegacyShard> ordered_shards(const LegacyRank& rank,
                                                        const StageContents& stage) const {
    std::vector<LegacyShard> shards = legacy_shards(descs_, config_, rank, stage, modules_);
    std::vector<std::string> names;
    for (const LegacyShard& shard : shards) names.push_back(shard.desc.name);
    std::vector<LegacyShard> ordered;
    for (const std::size_t i : in_module_order(names)) ordered.push_back(std::move(shards[i]));
    return ordered;
  }

  static Status check_order(const std::vector<LegacyShard>& trained) {
    std::vector<std::string> names;
    for (const LegacyShard& shard : trained) names.push_back(shard.desc.name);
    return check_module_order(names);
  }

  // A tensor of the rank's optimizer: cut as its weight is, or a step.
  Status add_state(const LegacyShard& shard, const OptimizerStorage& storage,
                   std::vector<StoredTensor>& tensors, std::vector<TensorRecipe>& recipes) const {
    TensorRecipe recipe;
    TensorDesc desc{fmt::format("optimizer/{}", shard.desc.name), DType::kF32, {}};
    if (storage.kind == OptimizerStorage::Kind::kStep) {
      recipe.fill = storage.step;
    } else {
      desc.shape = shard.desc.shape;
      SW_TRY(join_runs(shard, storage.kind, recipe));
    }
    const int axes = desc.shape.size();
    tensors.push_back({std::move(desc), ChunkList(axes)});
    recipes.push_back(std::move(recipe));
    return {};
  }

  // The runs of a shard one behind the other: of the weight, or of one of its states.
  Status join_runs(const LegacyShard& shard, std::optional<OptimizerStorage::Kind> kind,
                   TensorRecipe& recipe) const {
    std::int64_t row = 0;
    for (const ShardRun& run : shard.runs) {
      std::size_t draft = drafts_[run.canonical];
      // A float32 weight is its own master weight, also where it had 16 bits before.
      const bool is_master = !kind && descs_[run.canonical].dtype == DType::kF32;
      if (kind || is_master) {
        const auto state =
            states_.find({run.canonical, kind.value_or(OptimizerStorage::Kind::kMaster)});
        if (state != states_.end()) draft = state->second;
        if (state == states_.end() && kind) {
          return fail(Code::kOptimizerUnsupported,
                      "tensor {} has no optimizer state, which each parameter needs; convert "
                      "without (--optimizer drop)",
                      descs_[run.canonical].name);
        }
      }
      const int dropped = run.one_expert ? 1 : 0;
      append_piece(parts_.tensors[draft].recipe, views_[draft], run.box, dropped, row, recipe);
      if (run.box.axes() > dropped) row += run.box.shape[dropped];
    }
    return {};
  }

  LegacyStateDict make_dict(const std::vector<LegacyShard>& shards,
                            const StageContents& stage) const {
    const ExtraStates states(shards, is_local_, parts_.final_norm_has_state);
    LegacyStateDict dict;
    bool has_output = false;
    bool is_nested = false;  // in a vision-language model
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const TensorDesc& desc = shards[i].desc;
      states.append_before(desc.name, i, dict);
      dict.push_back({desc.name, LegacyEntry::Kind::kTensor, desc.dtype, desc.shape});
      states.append(desc.name, i, dict);
      has_output = has_output || desc.name.ends_with("output_layer.weight");
      is_nested = is_nested || desc.name.starts_with("language_model.");
    }
    // A tied output layer has no weight of its own where the embedding is at hand.
    if (stage.has_end && !has_output) {
      const std::string name = "output_layer._extra_state";
      dict.push_back(
          {is_nested ? "language_model." + name : name, LegacyEntry::Kind::kNone, DType::kU8, {}});
    }
    return dict;
  }

  // The tensors of a dict as tensors of the target, empty states among them.
  Status add_tensors(const std::vector<LegacyShard>& shards, const LegacyStateDict& dict,
                     std::vector<StoredTensor>& tensors, std::vector<TensorRecipe>& recipes) const {
    std::size_t next = 0;
    for (const LegacyEntry& entry : dict) {
      if (entry.kind != LegacyEntry::Kind::kTensor) continue;
      tensors.push_back({{entry.name, entry.dtype, entry.shape}, ChunkList(entry.shape.size())});
      TensorRecipe recipe;
      if (next < shards.size() && shards[next].desc.name == entry.name) {
        SW_TRY(join_runs(shards[next], std::nullopt, recipe));
        ++next;
      }
      recipes.push_back(std::move(recipe));
    }
    return {};
  }

  void add_file(std::string path, const std::string& folder, const LegacyFileLayout& layout,
                std::vector<StoredTensor> tensors, std::vector<TensorRecipe> recipes) {
    TargetArchive archive{static_cast<std::uint32_t>(plan_.target.files.size()),
                          std::string(kLegacyPrefix),
                          layout.pickle,
                          {}};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      archive.storages.push_back(static_cast<std::uint32_t>(plan_.target.tensors.size()));
      StoredTensor& tensor = tensors[i];
      tensor.chunks.push_back(
          {Box::whole(tensor.desc.shape), archive.file, layout.storages[i], {}});
      tensor.desc.name = fmt::format("{}/{}", folder, tensor.desc.name);
      plan_.target.tensors.push_back(std::move(tensor));
      plan_.tensors.push_back(std::move(recipes[i]));
    }
    plan_.target.files.push_back(std::move(path));
    plan_.file_sizes.push_back(layout.file_bytes);
    plan_.archives.push_back(std::move(archive));
  }

  const TargetParts& parts_;
  const ConvertRequest& request_;
  const ParallelConfig& config_;
  Plan& plan_;
  std::size_t expected_ = 0;         // tensors of the target
  std::vector<TensorDesc> descs_;    // of the model's tensors
  std::vector<std::size_t> drafts_;  // which drafts they are
  std::vector<ViewIndex> views_;     // of all drafts
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::map<std::pair<std::size_t, OptimizerStorage::Kind>, std::size_t> states_;
  bool is_mixed_ = true;
  LegacyModules modules_;
  bool is_local_ = false;
  bool has_mtp_ = false;
  bool is_tied_ = true;
};

class LegacyTarget : public Target {
 public:
  LegacyTarget()
      : Target({.name = "legacy",
                .names = TargetNames::kMegatron,
                .keeps_optimizer = true,
                .has_grid = true,
                .is_of_fixed_ranks = true,
                .holds_state_dicts = true,
                .holds_extras = false,
                .backend = "torch",
                .hf_folder = "iter_0000000/hf/"}) {}

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    SW_TRY(LegacyPlanner(parts, request, plan).run());
    parts.files.push_back({"latest_checkpointed_iteration.txt", parts.tracker});
    complete(parts, plan);
    return {};
  }
};

}  // namespace

const Target& legacy_target() {
  static const LegacyTarget target;
  return target;
}

}  // namespace shardwright
