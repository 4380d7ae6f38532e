// SPDX-License-Identifier: Apache-2.0
#include "format/model_files.h"

#include <algorithm>
#include <array>
#include <span>

#include "format/sibling.h"
#include "layout/folder_groups.h"

namespace shardwright {
namespace {

// `*` stands for any text, `#` for a number.
constexpr std::array<std::string_view, 9> kTokenizers = {
    "tokenizer.json", "tokenizer.model*", "tokenizer_config.json",
    "*.tiktoken",     "tekken.json",      "spiece.model",
    "vocab.json",     "vocab.txt",        "sentencepiece.bpe.model",
};
constexpr std::array<std::string_view, 21> kDescriptions = {
    "config.json",
    "configuration.json",
    "generation_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "chat_template.json",
    "chat_template.jinja",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "hf_quant_config.json",
    "quantize_config.json",
    "quantization_config.json",
    "configuration_*.py",
    "modeling_*.py",
    "tokenization_*.py",
    "processing_*.py",
    "image_processing_*.py",
    "video_processing_*.py",
    "feature_extraction_*.py",
};
constexpr std::array<std::string_view, 13> kBesideModel = {
    "README.md",
    "LICENSE*",
    "NOTICE*",
    "USE_POLICY.md",
    ".gitattributes",
    "model.safetensors.index.json",
    "source_keys.json",
    "model*-#-of-#.safetensors",
    "integrity.json",
    "shardwright-digests.jsonl",
    "model.sig",
    "diffusion_pytorch_model.safetensors.index.json",
    "diffusion_pytorch_model*-#-of-#.safetensors",
};
constexpr std::array<std::string_view, 13> kIteration = {
    ".metadata",           "__#.metadata",        "__#_#.distcp",   "common.pt",
    "metadata.json",       "run_config.yaml",     "train_state.pt", "components.json",
    "optimizer_rank_#.pt", "rng_state_rank_#.pt", "integrity.json", "shardwright-digests.jsonl",
    "model.sig",
};
constexpr std::array<std::string_view, 4> kRank = {"model_optim_rng.pt", "model_rng.pt", "model.pt",
                                                   "train_dataloader_dprank#.pt"};

bool matches_one(std::string_view name, std::span<const std::string_view> patterns) {
  return std::ranges::any_of(patterns, [&](std::string_view p) { return matches_sign(name, p); });
}

}  // namespace

bool is_of_tokenizer(std::string_view name) { return matches_one(name, kTokenizers); }

bool describes_model(std::string_view name) {
  return is_of_tokenizer(name) || matches_one(name, kDescriptions);
}

bool is_usual_in_model(std::string_view name) {
  return describes_model(name) || matches_one(name, kBesideModel);
}

bool is_usual_in_iteration(std::string_view name) { return matches_one(name, kIteration); }

bool is_usual_in_rank(std::string_view name) {
  return matches_one(name, kRank) || is_optimizer_file(name);
}

}  // namespace shardwright
