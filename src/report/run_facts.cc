// SPDX-License-Identifier: Apache-2.0
#include "report/run_facts.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "model/arguments.h"
#include "model/config.h"

namespace shardwright {
namespace {

struct NamedArgument {
  std::string_view argument;
  std::string_view shown;
};

constexpr std::array kLayoutArguments = {
    NamedArgument{"tensor_model_parallel_size", "TP"},
    NamedArgument{"pipeline_model_parallel_size", "PP"},
    NamedArgument{"virtual_pipeline_model_parallel_size", "VPP"},
    NamedArgument{"expert_model_parallel_size", "EP"},
    NamedArgument{"expert_tensor_parallel_size", "ETP"},
    NamedArgument{"context_parallel_size", "CP"},
    NamedArgument{"data_parallel_size", "DP"},
};

constexpr std::array kModelArguments = {
    NamedArgument{"num_layers", "layers"},
    NamedArgument{"hidden_size", "hidden"},
    NamedArgument{"ffn_hidden_size", "ffn"},
    NamedArgument{"num_attention_heads", "heads"},
    NamedArgument{"num_query_groups", "query groups"},
    NamedArgument{"kv_channels", "head size"},
    NamedArgument{"num_experts", "experts"},
    NamedArgument{"moe_router_topk", "top-k"},
    NamedArgument{"padded_vocab_size", "vocabulary"},
};

// config.json has several names for some of these; the first that is there counts.
constexpr std::array kConfigValues = {
    NamedArgument{"num_hidden_layers", "layers"},
    NamedArgument{"hidden_size", "hidden"},
    NamedArgument{"intermediate_size", "ffn"},
    NamedArgument{"num_attention_heads", "heads"},
    NamedArgument{"num_key_value_heads", "query groups"},
    NamedArgument{"head_dim", "head size"},
    NamedArgument{"num_experts", "experts"},
    NamedArgument{"num_local_experts", "experts"},
    NamedArgument{"n_routed_experts", "experts"},
    NamedArgument{"num_experts_per_tok", "top-k"},
    NamedArgument{"vocab_size", "vocabulary"},
};

void add_facts(std::span<const NamedArgument> wanted, const Arguments& values, Facts& facts) {
  for (const NamedArgument& name : wanted) {
    const auto found = values.find(name.argument);
    if (found == values.end() || std::holds_alternative<std::monostate>(found->second)) continue;
    const bool known = std::any_of(facts.begin(), facts.end(),
                                   [&](const auto& fact) { return fact.first == name.shown; });
    if (!known) facts.emplace_back(name.shown, to_string(found->second));
  }
}

}  // namespace

Facts layout_facts(const Checkpoint& checkpoint) {
  Facts facts;
  add_facts(kLayoutArguments, checkpoint.arguments, facts);
  std::erase_if(facts, [](const auto& fact) { return fact.second == "1"; });
  return facts;
}

Facts model_facts(const Checkpoint& checkpoint) {
  Facts facts;
  add_facts(kModelArguments, checkpoint.arguments, facts);
  if (!facts.empty() || checkpoint.hf_config.empty()) return facts;
  // A config that cannot be read matters to a conversion, not to a look at the tensors.
  const Result<HfConfig> config = read_hf_config(checkpoint.hf_config);
  if (!config) return {{"config.json", config.error().message}};
  for (const std::string& name : config->architectures) facts.emplace_back("architecture", name);
  add_facts(kConfigValues, config->values, facts);
  return facts;
}

}  // namespace shardwright
