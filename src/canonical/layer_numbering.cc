// SPDX-License-Identifier: Apache-2.0
#include "canonical/layer_numbering.h"

#include "model/arguments.h"

namespace shardwright {

LayerKeys layer_keys_of(const Arguments& arguments) {
  for (const std::string_view name : {"moe_layer_freq", "linear_attention_freq"}) {
    const ArgValue* value = find_set(arguments, name);
    if (value == nullptr) continue;
    const auto* every = std::get_if<std::int64_t>(value);
    const bool lists = std::holds_alternative<std::vector<std::int64_t>>(*value);
    if (lists || (every != nullptr && *every > 1)) return LayerKeys::kNumbered;
  }
  return is_true(arguments, "is_hybrid_model") ||
                 find_set(arguments, "hybrid_override_pattern") != nullptr
             ? LayerKeys::kNumbered
             : LayerKeys::kAutomatic;
}

LayerKeys layer_keys_of(const ModelFacts& facts) {
  if (!facts.config) return LayerKeys::kAutomatic;
  const Result<ArgsFromConfig> args = args_from_hf_config(*facts.mapping, *facts.config);
  if (!args) return LayerKeys::kAutomatic;
  return layer_keys_of(Arguments(args->values.begin(), args->values.end()));
}

}  // namespace shardwright
