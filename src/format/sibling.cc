// SPDX-License-Identifier: Apache-2.0
#include "format/sibling.h"

#include <algorithm>
#include <array>

namespace shardwright {
namespace {

constexpr Sibling kUniversal = {
    "deepspeed_universal", "a DeepSpeed universal checkpoint (one folder per parameter)",
    "DeepSpeed universal checkpoint（每个参数一个目录）", "DeepSpeed with --universal-checkpoint",
    "DeepSpeed（--universal-checkpoint）"};
constexpr Sibling kMoe = {"deepspeed_moe", "a DeepSpeed MoE checkpoint (one file per expert)",
                          "DeepSpeed MoE checkpoint（每个专家一个文件）",
                          "DeepSpeed's load_checkpoint", "DeepSpeed 的 load_checkpoint"};
constexpr Sibling kPipe = {
    "deepspeed_pipe", "a DeepSpeed pipeline checkpoint of Megatron-DeepSpeed (one file per layer)",
    "Megatron-DeepSpeed 的 DeepSpeed pipeline checkpoint（每层一个文件）",
    "DeepSpeed's ds_to_universal.py, or Megatron-DeepSpeed's deepspeed_to_transformers.py",
    "DeepSpeed 的 ds_to_universal.py，或 Megatron-DeepSpeed 的 deepspeed_to_transformers.py"};
constexpr Sibling kZero = {
    "deepspeed_zero",
    "a DeepSpeed ZeRO checkpoint (what it calls pp_rank is the data-parallel rank)",
    "DeepSpeed ZeRO checkpoint（其中的 pp_rank 实为数据并行 rank）",
    "DeepSpeed's zero_to_fp32.py or ds_to_universal.py",
    "DeepSpeed 的 zero_to_fp32.py 或 ds_to_universal.py"};
constexpr Sibling kDeepSpeed = {
    "deepspeed",
    "a DeepSpeed checkpoint (model states by model-parallel rank; SwissArmyTransformer's too)",
    "DeepSpeed checkpoint（按模型并行 rank 保存；SwissArmyTransformer 亦如此）",
    "DeepSpeed's load_checkpoint, or its zero_to_fp32.py for ZeRO",
    "DeepSpeed 的 load_checkpoint；ZeRO 用 zero_to_fp32.py"};
constexpr Sibling kNemoOne = {"nemo1", "a NeMo 1 checkpoint", "NeMo 1 checkpoint",
                              "NeMo 1's converters (scripts/checkpoint_converters)",
                              "NeMo 1 的转换脚本（scripts/checkpoint_converters）"};
constexpr Sibling kVerlFsdp = {"verl_fsdp", "a verl FSDP checkpoint (one file per rank)",
                               "verl FSDP checkpoint（每个 rank 一个文件）",
                               "verl's model merger (python -m verl.model_merger)",
                               "verl 的合并工具（python -m verl.model_merger）"};
constexpr Sibling kMlite = {"mlite", "training state of MLite, one file per rank",
                            "MLite 的训练状态（每个 rank 一个文件）", "MLite on equally many ranks",
                            "相同 rank 数的 MLite"};
constexpr Sibling kCornstarch = {
    "cornstarch", "a Cornstarch checkpoint (one folder per modality, one file per pipeline stage)",
    "Cornstarch checkpoint（每个模态一个目录，每个 pipeline stage 一个文件）",
    "Cornstarch (ColossalAI's checkpoint IO)", "Cornstarch（ColossalAI 的 checkpoint IO）"};
constexpr Sibling kZarr = {"zarr", "a Megatron-Core checkpoint in the zarr backend",
                           "zarr 后端的 Megatron-Core checkpoint",
                           "Megatron-Core 0.15 or older; re-save it there as torch_dist",
                           "Megatron-Core 0.15 或更早版本，可在其中另存为 torch_dist"};
constexpr Sibling kPeft = {"peft", "a PEFT adapter without its base model",
                           "不含基座模型的 PEFT adapter",
                           "peft; merge it into its base model first (merge_and_unload)",
                           "peft；请先合并到基座模型（merge_and_unload）"};
constexpr Sibling kHfPickle = {
    "hf_pickle", "a Hugging Face model in pickle files", "pickle 文件格式的 Hugging Face 模型",
    "transformers; save it as safetensors first", "transformers；请先另存为 safetensors"};
constexpr Sibling kGradients = {
    "gradients", "gradients that Megatron saved (mp_rank_*.pth), no checkpoint",
    "Megatron 保存的梯度（mp_rank_*.pth），不是 checkpoint", "torch.load", "torch.load"};
constexpr Sibling kDataloader = {
    "dataloader", "states of data loaders, no model", "dataloader 状态，没有模型",
    "Megatron-Energon, through --dataloader-save", "Megatron-Energon（--dataloader-save）"};
constexpr Sibling kOptimizer = {"optimizer", "an optimizer's files without a model",
                                "只有优化器文件，没有模型", "the Megatron run that wrote it",
                                "写出它的 Megatron 训练任务"};
constexpr Sibling kRankFolder = {
    "legacy_rank", "the folder of one rank of a legacy Megatron checkpoint",
    "legacy Megatron checkpoint 中单个 rank 的目录", "shardwright, given its parent folder",
    "shardwright（请传入其父目录）"};
constexpr Sibling kCommonOnly = {
    "ms_swift",
    "a Megatron iteration of ms-swift without weights: they are in the safetensors beside it",
    "ms-swift 的 Megatron iteration 目录，不含权重：权重在同级 safetensors 中",
    "shardwright, given the parent folder", "shardwright（请传入其父目录）"};
constexpr Sibling kNonPersistent = {"non_persistent",
                                    "Megatron's non-persistent checkpoints, kept for a restart",
                                    "Megatron 的 non-persistent checkpoint，仅用于重启",
                                    "the Megatron run that wrote it", "写出它的 Megatron 训练任务"};

// A row is one way to recognise a layout: every sign must match an entry. A sign that ends in `/`
// matches folders, others match files; `=` before a sign: nothing else is there.
struct Rule {
  const Sibling* sibling;
  std::array<std::string_view, 3> signs;
};

constexpr std::array kRules = {
    Rule{&kUniversal, {"zero/", "*_model_states.pt"}},
    Rule{&kUniversal, {"latest_universal"}},
    Rule{&kMoe, {"*expert_#_mp_rank_#_model_states.pt"}},
    Rule{&kMoe, {"expp_rank_#_mp_rank_#_optim_states.pt"}},
    Rule{&kPipe, {"layer_#-model_*model_states.pt"}},
    Rule{&kPipe, {"module-pipe_*"}},
    Rule{&kZero, {"*zero_pp_rank_#_mp_rank_#_optim_states.pt"}},
    Rule{&kZero, {"*zero_pp_rank_#_mp_rank_#_model_states.pt"}},
    Rule{&kZero, {"zero_to_fp32.py"}},
    Rule{&kDeepSpeed, {"mp_rank_#_model_states.pt"}},
    Rule{&kDeepSpeed, {"latest", "*/"}},
    Rule{&kDeepSpeed, {"global_step#/"}},
    Rule{&kNemoOne, {"model_config.yaml", "model_weights*"}},
    Rule{&kNemoOne, {"model_config.yaml", "model_weights/"}},
    Rule{&kNemoOne, {"model_config.yaml", "mp_rank_*/"}},
    Rule{&kNemoOne, {"tp_rank_#_pp_rank_#/"}},
    Rule{&kNemoOne, {"*fsdp_shard_#/"}},
    Rule{&kNemoOne, {"model_weights.ckpt"}},
    Rule{&kNemoOne, {"model_weights/"}},
    Rule{&kNemoOne, {"*.nemo"}},
    Rule{&kNemoOne, {"*-unfinished"}},
    Rule{&kVerlFsdp, {"model_world_size_#_rank_#.pt"}},
    Rule{&kVerlFsdp, {"fsdp_config.json"}},
    Rule{&kMlite, {"training_state_rank_#.pt"}},
    Rule{&kCornstarch, {"module/", "projector/"}},
    Rule{&kCornstarch, {"pytorch_model-stage-*"}},
    Rule{&kZarr, {".zarray"}},
    Rule{&kPeft, {"adapter_model.*"}},
    Rule{&kPeft, {"adapter_config.json"}},
    Rule{&kHfPickle, {"pytorch_model*.bin"}},
    Rule{&kHfPickle, {"pytorch_model.bin.index.json"}},
    Rule{&kGradients, {"mp_rank_#*.pth"}},
    Rule{&kRankFolder, {"model_optim_rng.pt"}},
    Rule{&kRankFolder, {"model_rng.pt"}},
    Rule{&kOptimizer, {"distrib_optim.pt"}},
    Rule{&kOptimizer, {"optim.pt"}},
    Rule{&kOptimizer, {"layer_wise_optimizer_#.pt"}},
    Rule{&kDataloader, {"train_dataloader_dprank#.pt"}},
    Rule{&kCommonOnly, {"=common.pt"}},
    Rule{&kNonPersistent, {"=non_persistent/"}},
};

constexpr Sibling kBridge = {"torch_dist", "Megatron-Bridge", "Megatron-Bridge", "", ""};
constexpr Sibling kVeOmni = {"dcp", "VeOmni", "VeOmni", "", ""};
constexpr Sibling kMliteDcp = {"dcp", "MLite", "MLite", "", ""};
constexpr Sibling kSwift = {"hf", "ms-swift", "ms-swift", "", ""};
constexpr Sibling kSlime = {"torch_dist", "slime", "slime", "", ""};
constexpr Sibling kVerl = {"torch_dist", "verl", "verl", "", ""};
constexpr Sibling kNemoTwo = {"torch_dist", "NeMo 2", "NeMo 2", "", ""};

constexpr std::array kWriters = {
    Rule{&kBridge, {"run_config.yaml"}},
    Rule{&kBridge, {"latest_train_state.pt"}},
    Rule{&kBridge, {"train_state.pt"}},
    Rule{&kVeOmni, {".metadata", "extra_state/"}},
    Rule{&kMliteDcp, {".metadata", "optimizer_rank_#.pt"}},
    Rule{&kMliteDcp, {".metadata", "rng_state_rank_#.pt"}},
    Rule{&kSwift, {"args.json", "iter_#/"}},
    Rule{&kSlime, {"rollout/", "latest_checkpointed_iteration.txt"}},
    Rule{&kVerl, {"dist_ckpt/"}},
    Rule{&kVerl, {"transformer_config.json"}},
    Rule{&kVerl, {"actor/"}},
    Rule{&kNemoTwo, {"weights/", "context/"}},
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

const DirectoryEntry* entry_like(std::span<const DirectoryEntry> entries, std::string_view sign) {
  if (sign.starts_with('=')) {
    if (entries.size() != 1) return nullptr;
    sign.remove_prefix(1);
  }
  const bool is_folder = sign.ends_with('/');
  if (is_folder) sign.remove_suffix(1);
  const auto found = std::ranges::find_if(entries, [&](const DirectoryEntry& entry) {
    return entry.is_directory == is_folder && matches_sign(entry.name, sign);
  });
  return found == entries.end() ? nullptr : &*found;
}

template <std::size_t n>
std::vector<SiblingMatch> matching(const std::array<Rule, n>& rules,
                                   std::span<const DirectoryEntry> entries) {
  std::vector<SiblingMatch> matches;
  for (const Rule& rule : rules) {
    const bool is_known = std::ranges::any_of(
        matches, [&](const SiblingMatch& match) { return match.sibling == rule.sibling; });
    if (is_known) continue;
    const DirectoryEntry* first = nullptr;
    bool matches_all = true;
    for (const std::string_view sign : rule.signs) {
      if (sign.empty()) continue;
      const DirectoryEntry* entry = entry_like(entries, sign);
      if (entry == nullptr) matches_all = false;
      if (first == nullptr) first = entry;
    }
    if (matches_all && first != nullptr) matches.push_back({rule.sibling, first->name});
  }
  return matches;
}

}  // namespace

bool matches_sign(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= name.size(); ++skip) {
      if (matches_sign(name.substr(skip), pattern.substr(1))) return true;
    }
    return false;
  }
  if (pattern.front() == '#') {
    std::size_t digits = 0;
    while (digits < name.size() && is_digit(name[digits])) ++digits;
    return digits > 0 && matches_sign(name.substr(digits), pattern.substr(1));
  }
  return !name.empty() && name.front() == pattern.front() &&
         matches_sign(name.substr(1), pattern.substr(1));
}

std::vector<SiblingMatch> recognise_siblings(std::span<const DirectoryEntry> entries) {
  return matching(kRules, entries);
}

std::vector<SiblingMatch> recognise_writers(std::span<const DirectoryEntry> entries) {
  return matching(kWriters, entries);
}

const Sibling& zarr_sibling() { return kZarr; }

const Sibling* recognise_sibling_file(std::string_view name) {
  if (name.ends_with(".nemo")) return &kNemoOne;
  if (name.ends_with("_model_states.pt")) return &kDeepSpeed;
  if (name.ends_with(".ckpt")) return &kNemoOne;
  if (name.ends_with(".pth")) return &kGradients;
  return nullptr;
}

}  // namespace shardwright
