// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_target.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "format/legacy/extra_states.h"
#include "format/legacy/legacy_layout.h"
#include "format/rank_modules.h"
#include "layout/adapter_shards.h"
#include "layout/layer_name.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_shards.h"
#include "layout/model_head.h"
#include "layout/module_order.h"
#include "layout/placement.h"
#include "layout/state_name.h"
#include "layout/tower.h"
#include "model/arguments.h"
#include "plan/canonical.h"
#include "state/common_state.h"
#include "state/loss_scale.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

constexpr const char* kVersionNote =
    "layers for multi-token prediction are called mtp_model_layer inside, as Megatron-Core has "
    "them "
    "since 0.17; 0.16 and older look for transformer_layer";

constexpr const char* kFrozenNote =
    "files of ranks do not say which parameters were frozen: Megatron-LM goes on from them where "
    "it freezes the same ones, but nothing else can tell whose the optimizer's states are; keep "
    "the source";

// A run of a storage that all ranks of a stage have, each with a box of its own.
struct PlacedRun {
  std::size_t draft = 0;
  const ShardRun* run = nullptr;
  std::size_t storage = 0;
  std::uint64_t begin = 0;  // in the storage
};

// An optimizer's step, which is a tensor of one number.
struct PlacedStep {
  double step = 0.0;
  std::size_t storage = 0;
};

// What the ranks of a pipeline stage have in common. Runs lie in the shards.
struct WrittenStage {
  std::vector<std::vector<LegacyShard>> shards;  // of each virtual stage
  std::vector<PlacedRun> runs;
  std::vector<PlacedStep> steps;
  std::optional<LegacyStageFiles> files;
};

// Every tensor of the model is a tensor of the target, whose chunks lie in the files of ranks.
class LegacyPlanner {
  using States = std::map<std::string, std::size_t, std::less<>>;  // the drafts, by kind

 public:
  LegacyPlanner(TargetParts& parts, const ConvertRequest& request, Plan& plan)
      : parts_(parts), request_(request), config_(request.parallel), plan_(plan) {
    chunks_.reserve(parts.tensors.size());
    for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
      const DraftTensor& draft = parts.tensors[i];
      chunks_.emplace_back(draft.desc.shape.size());
      if (is_optimizer_name(draft.desc.name)) continue;
      by_name_.emplace(draft.desc.name, descs_.size());
      descs_.push_back(draft.desc);
      drafts_.push_back(i);
      has_mtp_ = has_mtp_ || is_prediction_layer(draft.desc.name);
      is_tied_ = is_tied_ && !draft.desc.name.ends_with("output_layer.weight");
    }
    const OutputHeads heads(descs_);
    output_is_head_ =
        std::ranges::any_of(descs_, [&](const TensorDesc& desc) { return heads.has(desc); });
  }

  Status run() {
    SW_TRY(find_states());
    const std::vector<LegacyRank> ranks = SW_TRY(legacy_grid(config_));
    const GatedFirsts gated(descs_);
    for (const TensorDesc& desc : descs_) SW_TRY(check_adapter_shares(desc, gated, config_));
    const Placement placement = SW_TRY(Placement::make(descs_, config_, parts_.splits));
    for (const TensorDesc& desc : descs_) SW_TRY(placement.place(desc));  // all of them divide
    SW_TRY(choose_modules());
    SW_TRY(check_layers(count_main_layers(descs_)));
    for (std::int64_t pipeline = 0; pipeline < config_.pipeline; ++pipeline) {
      WrittenStage stage = SW_TRY(make_stage(pipeline, placement.splits()));
      const auto is_of_stage = [&](const LegacyRank& rank) { return rank.pipeline == pipeline; };
      reserve(stage, static_cast<std::size_t>(std::ranges::count_if(ranks, is_of_stage)));
      for (const LegacyRank& rank : ranks) {
        if (is_of_stage(rank)) SW_TRY(add_rank(rank, stage));
      }
    }
    add_tensors();
    return {};
  }

  [[nodiscard]] bool drops_loss_scale() const { return drops_loss_scale_; }
  [[nodiscard]] bool guesses_version() const { return guesses_version_; }
  [[nodiscard]] bool has_frozen() const { return has_frozen_; }

 private:
  // Adapters may be of some layers only, and stages share out all of them.
  [[nodiscard]] Status check_layers(std::int64_t layers) const {
    const auto is_adapter = [](const TensorDesc& desc) {
      return adapter_tensor(desc.name).has_value();
    };
    if (config_.pipeline == 1 || !std::ranges::any_of(descs_, is_adapter)) return {};
    const std::optional<std::int64_t> all =
        shardwright::number_of(parts_.arguments, {"num_layers"});
    if (!all || *all == layers) return {};
    return fail(Code::kShapeMismatch,
                "--pp {}: found adapters up to layer {}, expected {} layers as the run's arguments "
                "say, which the stages share out; keep them in torch_dist or give --pp 1",
                config_.pipeline, layers - 1, *all);
  }

  // Which draft is which state of which weight.
  Status find_states() {
    for (std::size_t i = 0; i < parts_.tensors.size(); ++i) {
      const std::string& name = parts_.tensors[i].desc.name;
      if (!is_optimizer_name(name)) continue;
      const auto state = split_state_name(name);
      const auto weight = by_name_.find(state ? state->tensor : std::string_view());
      if (weight == by_name_.end()) {
        return fail(Code::kOptimizerUnsupported,
                    "tensor {}: found a state of no weight that is there, expected "
                    "optimizer.state.KIND and the name of one; convert without (--optimizer drop)",
                    name);
      }
      TensorDesc& desc = parts_.tensors[i].desc;
      if (!(desc.shape == descs_[weight->second].shape)) {
        return fail(Code::kOptimizerUnsupported,
                    "tensor {}: found {}, expected {} as its weight: what is shared out otherwise "
                    "has no place in files of ranks; convert without (--optimizer drop)",
                    name, to_string(desc.shape), to_string(descs_[weight->second].shape));
      }
      desc.dtype = DType::kF32;
      if (states_[weight->second].emplace(state->kind, i).second) continue;
      return fail(Code::kDuplicateName, "tensor {}: found this state of {} under another name too",
                  name, state->tensor);
    }
    // A float32 weight is its own master weight, also where it had 16 bits before.
    for (const auto& [weight, states] : states_) {
      const auto master = states.find(kStateKinds[0]);
      if (master == states.end() || descs_[weight].dtype != DType::kF32) continue;
      parts_.tensors[drafts_[weight]].recipe = std::move(parts_.tensors[master->second].recipe);
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
    modules_ = rank_modules(descs_, state.arguments(), is_local_, parts_.versioned_names);
    guesses_version_ =
        !parts_.versioned_names.has_mtp_model_layer && !is_of_training_run(state.arguments()) &&
        std::ranges::any_of(
            descs_, [](const TensorDesc& desc) { return desc.name.starts_with("mtp.layers."); });
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

  Result<WrittenStage> make_stage(std::int64_t pipeline, const StackSplits& splits) {
    const std::vector<StageContents> contents =
        stage_contents(config_, splits, pipeline, has_mtp_, is_tied_);
    WrittenStage stage;
    std::vector<LegacyStateDict> dicts;
    std::vector<const LegacyShard*> trained;
    std::size_t storages = 0;
    for (const StageContents& each : contents) stage.shards.push_back(ordered_shards(each));
    for (std::size_t i = 0; i < contents.size(); ++i) {
      const std::vector<LegacyShard>& shards = stage.shards[i];
      dicts.push_back(make_dict(shards, contents[i]));
      add_weights(shards, dicts.back(), storages, stage);
      std::vector<std::string> names;
      for (const LegacyShard& shard : shards) {
        if (!is_parameter(shard.desc.name, shard.desc.dtype)) continue;
        names.push_back(shard.desc.name);
        const bool is_listed = is_trained(shard);
        if (is_listed) trained.push_back(&shard);
        const std::string_view named = name_with_states(shard.desc.name);
        const bool is_twice = named != shard.desc.name && by_name_.contains(named);
        has_frozen_ |= !is_listed && !is_twice && !states_.empty();
      }
      if (!states_.empty()) SW_TRY(check_module_order(names));
    }
    LegacyTrained optimizer{{}, is_mixed_};
    for (const LegacyShard* shard : trained) {
      optimizer.parameters.push_back({shard->desc, states_of(*shard)});
    }
    stage.files.emplace(SW_TRY(layout_legacy_stage(parts_.common_state, writers(), dicts,
                                                   states_.empty() ? nullptr : &optimizer)));
    for (const OptimizerStorage& state : stage.files->stage().optimizer) {
      SW_TRY(add_state(*trained[state.parameter], state, storages++, stage));
    }
    drops_loss_scale_ |= stage.files->stage().drops_loss_scale;
    return stage;
  }

  // An optimizer lists no parameters that were frozen, which are those without any state.
  [[nodiscard]] bool is_trained(const LegacyShard& shard) const {
    return std::ranges::any_of(
        shard.runs, [&](const ShardRun& run) { return states_.contains(run.canonical); });
  }

  // By name, without the master weight.
  [[nodiscard]] std::vector<std::string> states_of(const LegacyShard& shard) const {
    std::vector<std::string> kinds;
    const auto states = states_.find(shard.runs.front().canonical);
    if (states == states_.end()) return kinds;
    for (const auto& [kind, draft] : states->second) {
      if (kind != kStateKinds[0]) kinds.push_back(kind);
    }
    return kinds;
  }

  // How many ranks a stage has.
  [[nodiscard]] std::int64_t stage_ranks() const {
    return std::lcm(config_.tensor, config_.expert_tensor * config_.expert);
  }

  [[nodiscard]] LegacyWriters writers() const {
    return {stage_ranks() * config_.pipeline, stage_ranks() / config_.tensor};
  }

  // The first of the ranks that this folder is for, in Megatron's order of them.
  [[nodiscard]] std::int64_t number_of(const LegacyRank& rank) const {
    std::int64_t number = 0;
    while (number % config_.tensor != rank.tensor ||
           number / config_.expert_tensor % config_.expert != rank.expert) {
      ++number;
    }
    return number + stage_ranks() * rank.pipeline;
  }

  // As torch lists the parameters of the stage's modules.
  [[nodiscard]] std::vector<LegacyShard> ordered_shards(const StageContents& stage) const {
    std::vector<LegacyShard> shards = legacy_shards(descs_, config_, stage, modules_);
    std::vector<std::string> names;
    for (const LegacyShard& shard : shards) names.push_back(shard.desc.name);
    std::vector<LegacyShard> ordered;
    for (const std::size_t i : in_module_order(names)) ordered.push_back(std::move(shards[i]));
    return ordered;
  }

  LegacyStateDict make_dict(const std::vector<LegacyShard>& shards,
                            const StageContents& stage) const {
    const ExtraStates states(shards, is_local_, parts_.final_norm_has_state, output_is_head_);
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

  // The tensors of a dict take the next storages, empty states among them.
  void add_weights(const std::vector<LegacyShard>& shards, const LegacyStateDict& dict,
                   std::size_t& storages, WrittenStage& stage) const {
    std::size_t next = 0;
    for (const LegacyEntry& entry : dict) {
      if (entry.kind != LegacyEntry::Kind::kTensor) continue;
      if (next < shards.size() && shards[next].desc.name == entry.name) {
        std::vector<std::size_t> drafts;
        for (const ShardRun& run : shards[next].runs) drafts.push_back(drafts_[run.canonical]);
        add_runs(shards[next++], drafts, storages, stage);
      }
      ++storages;
    }
  }

  // A tensor of the ranks' optimizer: cut as its weight is, or a step.
  Status add_state(const LegacyShard& shard, const OptimizerStorage& state, std::size_t storage,
                   WrittenStage& stage) const {
    if (state.step) {
      stage.steps.push_back({*state.step, storage});
      return {};
    }
    std::vector<std::size_t> drafts;
    for (const ShardRun& run : shard.runs) {
      const auto states = states_.find(run.canonical);
      const bool has_any = states != states_.end();
      const auto found = has_any ? states->second.find(state.kind) : States::const_iterator();
      if (!has_any || found == states->second.end()) {
        return fail(Code::kOptimizerUnsupported,
                    "tensor {} has no optimizer state {}, which each parameter of its group needs; "
                    "convert without (--optimizer drop)",
                    descs_[run.canonical].name, state.kind);
      }
      drafts.push_back(found->second);
    }
    add_runs(shard, drafts, storage, stage);
    return {};
  }

  // The runs of a shard one behind the other, each of its draft.
  void add_runs(const LegacyShard& shard, const std::vector<std::size_t>& drafts,
                std::size_t storage, WrittenStage& stage) const {
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      const ShardRun& run = shard.runs[i];
      stage.runs.push_back({drafts[i], &run, storage, begin});
      begin += chunk_bytes(drafts[i], run.box);
    }
  }

  [[nodiscard]] std::uint64_t chunk_bytes(std::size_t draft, const Box& box) const {
    return static_cast<std::uint64_t>(box.volume()) *
           static_cast<std::uint64_t>(bytes_of(parts_.tensors[draft].desc.dtype));
  }

  // Lists that double would hold the chunks twice.
  void reserve(const WrittenStage& stage, std::size_t ranks) {
    std::unordered_map<std::size_t, std::size_t> runs;
    for (const PlacedRun& placed : stage.runs) ++runs[placed.draft];
    for (const auto& [draft, count] : runs) {
      chunks_[draft].reserve(chunks_[draft].size() + count * ranks);
    }
  }

  Status add_rank(const LegacyRank& rank, WrittenStage& stage) {
    LegacyFileLayout layout = SW_TRY(stage.files->of_rank(number_of(rank)));
    const auto file = static_cast<std::uint32_t>(plan_.target.files.size());
    for (const PlacedRun& placed : stage.runs) {
      const Box box = box_of(*placed.run, rank);
      const std::uint64_t offset = (*layout.storages)[placed.storage].offset + placed.begin;
      chunks_[placed.draft].push_back({box, file, {offset, chunk_bytes(placed.draft, box)}, {}});
    }
    for (const PlacedStep& step : stage.steps) {
      ChunkList& chunks = steps_[std::bit_cast<std::uint64_t>(step.step)];
      chunks.push_back({{}, file, (*layout.storages)[step.storage], {}});
    }
    const RankNaming naming =
        request_.names_all_coordinates ? RankNaming::kTpPpEp : RankNaming::kMegatron;
    plan_.target.files.push_back(fmt::format(
        "{}{}/{}", parts_.folder, rank_folder_name(rank, config_, naming), kLegacyFileName));
    plan_.file_sizes.push_back(layout.file_bytes);
    plan_.archives.push_back(
        {file, std::string(kLegacyPrefix), std::move(layout.pickle), std::move(layout.storages)});
    return {};
  }

  // Optimizer states that no rank holds are those of values that are not trained.
  void add_tensors() {
    for (std::size_t i = 0; i < parts_.tensors.size(); ++i) {
      DraftTensor& draft = parts_.tensors[i];
      if (chunks_[i].empty() && is_optimizer_name(draft.desc.name)) continue;
      plan_.target.tensors.push_back({std::move(draft.desc), std::move(chunks_[i])});
      plan_.tensors.push_back(std::move(draft.recipe));
    }
    for (auto& [bits, chunks] : steps_) {
      const auto step = std::bit_cast<double>(bits);
      plan_.target.tensors.push_back(
          {{fmt::format("optimizer.step_{}", step), DType::kF32, {}}, std::move(chunks)});
      plan_.tensors.push_back({{}, step, 0.0});
    }
  }

  TargetParts& parts_;
  const ConvertRequest& request_;
  const ParallelConfig& config_;
  Plan& plan_;
  std::vector<TensorDesc> descs_;             // of the model's tensors
  std::vector<std::size_t> drafts_;           // which drafts they are
  std::vector<ChunkList> chunks_;             // of all drafts
  std::map<std::uint64_t, ChunkList> steps_;  // by the bits of the step
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::map<std::size_t, States> states_;  // by the weight's number
  bool is_mixed_ = true;
  bool drops_loss_scale_ = false;
  bool guesses_version_ = false;  // of the Megatron-Core that is to load it
  bool has_frozen_ = false;       // beside parameters with states
  LegacyModules modules_;
  bool is_local_ = false;
  bool has_mtp_ = false;
  bool is_tied_ = true;
  bool output_is_head_ = false;
};

// Megatron ends where it finds no RNG states in files of ranks. These have the optimizer's states
// as one without distribution keeps them: one that has it looks for files of its own.
void tell_how_to_go_on(const TargetParts& parts, std::vector<std::string>& notes) {
  const bool has_states = std::ranges::any_of(
      parts.tensors, [](const DraftTensor& tensor) { return is_optimizer_name(tensor.desc.name); });
  if (!has_states) return;
  notes.emplace_back("RNG states are left out: start the job with --no-load-rng");
  if (!is_true(parts.arguments, "use_distributed_optimizer")) return;
  notes.emplace_back(
      "optimizer states are those of a run without a distributed optimizer: go on from these files "
      "without --use-distributed-optimizer, or convert --to torch_dist");
}

class LegacyTarget : public Target {
 public:
  LegacyTarget()
      : Target({.name = "legacy",
                .names = TargetNames::kMegatron,
                .keeps_optimizer = true,
                .has_grid = true,
                .is_of_fixed_ranks = true,
                .holds_state_dicts = true,
                .has_layers_apart = true,
                .holds_extras = false,
                .backend = "torch",
                .hf_folder = "iter_0000000/hf/"}) {}

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& notes) const override {
    tell_how_to_go_on(parts, notes);
    LegacyPlanner planner(parts, request, plan);
    SW_TRY(planner.run());
    if (planner.drops_loss_scale()) notes.emplace_back(kLossScaleNote);
    if (planner.has_frozen()) notes.emplace_back(kFrozenNote);
    if (planner.guesses_version()) notes.emplace_back(kVersionNote);
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
