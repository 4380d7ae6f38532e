// SPDX-License-Identifier: Apache-2.0
#include "format/sibling.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

constexpr Sibling kMoe = {"deepspeed_moe", "sibling.moe", "reader.moe"};
constexpr Sibling kPipe = {"deepspeed_stages", "sibling.pipe", "reader.pipe"};
constexpr Sibling kDeepSpeed = {"deepspeed", "sibling.deep_speed", "reader.deep_speed"};
constexpr Sibling kNemoOne = {"nemo1", "sibling.nemo_one", "reader.nemo_one"};
constexpr Sibling kVerlFsdp = {"verl_fsdp", "sibling.verl_fsdp", "reader.verl_fsdp"};
constexpr Sibling kFsdpLocal = {"fsdp_local", "sibling.fsdp_local", "reader.fsdp_local"};
constexpr Sibling kMlite = {"mlite", "sibling.mlite", "reader.mlite"};
constexpr Sibling kCornstarch = {"cornstarch", "sibling.cornstarch", "reader.cornstarch"};
constexpr Sibling kZarr = {"zarr", "sibling.zarr", "reader.zarr"};
constexpr Sibling kPeft = {"peft", "sibling.peft", "reader.peft"};
constexpr Sibling kGradients = {"gradients", "sibling.gradients", "reader.gradients"};
constexpr Sibling kDataloader = {"dataloader", "sibling.dataloader", "reader.dataloader"};
constexpr Sibling kOptimizer = {"optimizer", "sibling.optimizer", "reader.optimizer"};
constexpr Sibling kRankFolder = {"legacy_rank", "sibling.rank_folder", "reader.rank_folder"};
constexpr Sibling kCommonOnly = {"ms_swift", "sibling.common_only", "reader.common_only"};
constexpr Sibling kOrbax = {"orbax", "sibling.orbax", "reader.orbax"};
constexpr Sibling kTensorRt = {"tensorrt_llm", "sibling.tensorrt_llm", "reader.tensorrt_llm"};
constexpr Sibling kServedRanks = {"vllm_sharded_state", "sibling.served_ranks",
                                  "reader.served_ranks"};
constexpr Sibling kPaddle = {"paddle", "sibling.paddle", "reader.paddle"};
constexpr Sibling kOnnx = {"onnx", "sibling.onnx", "reader.onnx"};
constexpr Sibling kGguf = {"gguf", "sibling.gguf", "reader.gguf"};
constexpr Sibling kNonPersistent = {"non_persistent", "sibling.non_persistent",
                                    "reader.non_persistent"};

constexpr Sibling kLocal = {"local", "sibling.local", "reader.local"};
constexpr Sibling kInternEvo = {"internevo", "sibling.internevo", "reader.internevo"};
constexpr Sibling kNanotron = {"nanotron", "sibling.nanotron", "reader.nanotron"};
constexpr Sibling kTfOrFlax = {"tf_or_flax", "sibling.tf_or_flax", "reader.tf_or_flax"};

constexpr std::string_view kTensorRtWeights = "rank#.safetensors";
constexpr std::string_view kServedWeights = "model-rank-#-part-#.safetensors";

// A row is one way to recognise a layout: every sign must match an entry. A sign that ends in `/`
// matches folders, others match files; `=` before a sign: nothing else is there.
struct Rule {
  const Sibling* sibling;
  std::array<std::string_view, 3> signs;
};

constexpr std::array kRules = {
    Rule{&kMoe, {"*expert_#_mp_rank_#_model_states.pt"}},
    Rule{&kMoe, {"expp_rank_#_mp_rank_#_optim_states.pt"}},
    Rule{&kPipe, {"module-pipe_*"}},
    Rule{&kDeepSpeed, {"zero_to_fp32.py"}},
    Rule{&kDeepSpeed, {"latest", "*/"}},
    Rule{&kDeepSpeed, {"global_step#/"}},
    Rule{&kNemoOne, {"*.nemo"}},
    Rule{&kNemoOne, {"*-unfinished"}},
    Rule{&kVerlFsdp, {"fsdp_config.json"}},
    Rule{&kFsdpLocal, {"pytorch_model_fsdp_*rank#.bin"}},
    Rule{&kMlite, {"training_state_rank_#.pt"}},
    Rule{&kCornstarch, {"module/", "projector/"}},
    Rule{&kCornstarch, {"pytorch_model-stage-*"}},
    Rule{&kZarr, {".zarray"}},
    Rule{&kPeft, {"adapter_model.*"}},
    Rule{&kPeft, {"adapter_config.json"}},
    Rule{&kGradients, {"mp_rank_#*.pth"}},
    Rule{&kRankFolder, {"model_optim_rng.pt"}},
    Rule{&kRankFolder, {"model_rng.pt"}},
    Rule{&kOptimizer, {"distrib_optim.pt"}},
    Rule{&kOptimizer, {"optim.pt"}},
    Rule{&kOptimizer, {"layer_wise_optimizer_#.pt"}},
    Rule{&kDataloader, {"train_dataloader_dprank#.pt"}},
    Rule{&kOrbax, {"orbax.checkpoint"}},
    Rule{&kOrbax, {"_CHECKPOINT_METADATA"}},
    Rule{&kOrbax, {"_METADATA"}},
    Rule{&kOrbax, {"manifest.ocdbt"}},
    Rule{&kTensorRt, {"rank#.engine"}},
    Rule{&kTensorRt, {kTensorRtWeights, "config.json"}},
    Rule{&kServedRanks, {kServedWeights, "config.json"}},
    Rule{&kPaddle, {"*.pdparams"}},
    Rule{&kPaddle, {"*.pdiparams"}},
    Rule{&kPaddle, {"*.pdopt"}},
    Rule{&kGguf, {"*.gguf"}},
    Rule{&kOnnx, {"*.onnx"}},
    Rule{&kOnnx, {"onnx/", "config.json"}},
    Rule{&kCommonOnly, {"=common.pt"}},
    Rule{&kNonPersistent, {"=non_persistent/"}},
    Rule{&kLocal, {"iter_#_#_local.pt"}},
    Rule{&kInternEvo, {"model_tp#_*pp#*.pt"}},
    Rule{&kNanotron, {"checkpoint_metadata.json", "model/"}},
    Rule{&kTfOrFlax, {"flax_model*.msgpack"}},
    Rule{&kTfOrFlax, {"tf_model*.h5"}},
};

// The same for a path that is a file.
struct FileRule {
  const Sibling* sibling;
  std::string_view sign;
};

constexpr std::array kFileRules = {
    FileRule{&kDeepSpeed, "*_model_states.pt"},
    FileRule{&kGradients, "mp_rank_#*.pth"},
    FileRule{&kTensorRt, "rank#.engine"},
    FileRule{&kPaddle, "*.pdparams"},
    FileRule{&kPaddle, "*.pdiparams"},
    FileRule{&kPaddle, "*.pdopt"},
    FileRule{&kGguf, "*.gguf"},
    FileRule{&kOnnx, "*.onnx"},
    FileRule{&kTfOrFlax, "flax_model*.msgpack"},
    FileRule{&kTfOrFlax, "tf_model*.h5"},
};

constexpr Sibling kBridge = {"torch_dist", "software.bridge", "none"};
constexpr Sibling kVeOmni = {"dcp", "software.ve_omni", "none"};
constexpr Sibling kMliteDcp = {"dcp", "software.mlite_dcp", "none"};
constexpr Sibling kSwift = {"hf", "software.swift", "none"};
constexpr Sibling kSlime = {"torch_dist", "software.slime", "none"};
constexpr Sibling kVerl = {"torch_dist", "software.verl", "none"};
constexpr Sibling kNemoTwo = {"torch_dist", "software.nemo_two", "none"};
constexpr Sibling kNemoRl = {"dcp", "software.nemo_rl", "none"};
constexpr Sibling kComposer = {"torch_files", "software.composer", "none"};
constexpr Sibling kRlinf = {"dcp", "software.rlinf", "none"};
constexpr Sibling kOlmoCore = {"dcp", "software.olmo_core", "none"};
constexpr Sibling kColossal = {"hf", "software.colossal", "none"};

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
    Rule{&kNemoRl, {"training_info.json", "policy/"}},
    Rule{&kComposer, {"latest-rank#.pt"}},
    Rule{&kComposer, {"ep#-ba#-rank#.pt"}},
    Rule{&kComposer, {"ep#-ba#/"}},
    Rule{&kRlinf, {"dcp_checkpoint/"}},
    Rule{&kOlmoCore, {"model_and_optim/", ".metadata.json"}},
    Rule{&kColossal, {"modeling/", "running_states.json"}},
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

const Sibling* recognise_sibling_file(std::string_view name) {
  const auto found = std::ranges::find_if(
      kFileRules, [&](const FileRule& rule) { return matches_sign(name, rule.sign); });
  return found == kFileRules.end() ? nullptr : found->sibling;
}

bool is_weights_of_serving(std::string_view name) {
  return matches_sign(name, kTensorRtWeights) || matches_sign(name, kServedWeights);
}

std::unexpected<Error> refuse_sibling(std::string_view shown, const Sibling& sibling) {
  return fail(Code::kUnsupportedFormat, "{} shows {}; it is read by {}", shown,
              said(phrase(sibling.what)), said(phrase(sibling.reader)));
}

}  // namespace shardwright
