// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/megatron_arguments.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright {
namespace {

// The later name wins where a fork has both.
void take_as(Arguments& arguments, std::string_view from, std::string_view to) {
  const auto found = arguments.find(from);
  if (found == arguments.end() || std::holds_alternative<std::monostate>(found->second)) return;
  ArgValue value = found->second;
  arguments.erase(found);
  if (find_set(arguments, to) == nullptr) {
    arguments.insert_or_assign(std::string(to), std::move(value));
  }
}

void take_groups(Arguments& arguments) {
  const ArgValue* const groups = find_set(arguments, "num_key_value_heads");
  const ArgValue* const heads = find_set(arguments, "num_attention_heads");
  if (groups == nullptr) return;
  const bool are_shared = heads != nullptr && !same_value(*groups, *heads);
  arguments.emplace("group_query_attention", ArgValue{are_shared});
  take_as(arguments, "num_key_value_heads", "num_query_groups");
}

void take_normalization(Arguments& arguments) {
  const ArgValue* const kind = find_set(arguments, "normalization");
  if (kind == nullptr) return;
  if (*kind == ArgValue{std::string("rmsnorm")}) {
    arguments.insert_or_assign("normalization", std::string("RMSNorm"));
  } else if (*kind == ArgValue{std::string("layernorm")}) {
    arguments.insert_or_assign("normalization", std::string("LayerNorm"));
  }
}

// A number for each layer that may have experts; of one expert DeepSpeed makes an ordinary MLP.
void take_experts(Arguments& arguments) {
  const ArgValue* const experts = find_set(arguments, "num_experts");
  const auto* const numbers =
      experts == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(experts);
  if (numbers == nullptr) return;
  const bool has_none =
      std::ranges::all_of(*numbers, [](std::int64_t number) { return number <= 1; });
  if (has_none) arguments.insert_or_assign("num_experts", ArgValue{});
}

}  // namespace

void take_megatron_deepspeed_arguments(Arguments& arguments) {
  take_groups(arguments);
  take_normalization(arguments);
  take_experts(arguments);
  if (is_true(arguments, "use_rotary_position_embeddings")) {
    arguments.emplace("position_embedding_type", ArgValue{std::string("rope")});
    // Said of learned positions, which rotary embedding is not one of to Megatron-Core.
    if (!is_true(arguments, "add_position_embedding")) arguments.erase("add_position_embedding");
    take_as(arguments, "rope_theta", "rotary_base");
  }
}

}  // namespace shardwright
