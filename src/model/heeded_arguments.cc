// SPDX-License-Identifier: Apache-2.0
#include "model/heeded_arguments.h"

#include <array>
#include <string>
#include <string_view>

namespace shardwright {
namespace {

constexpr std::string_view kTurnedPart = "rotary_percent";

// Latent attention has a width and a type of rotation of its own.
bool has_yarn_of_heads(const Arguments& args) {
  const ArgValue* const type = find_set(args, "position_embedding_type");
  return type != nullptr && same_value(*type, ArgValue{std::string("yarn")}) &&
         !is_true(args, "multi_latent_attention");
}

}  // namespace

bool turns_more_than_said(const Arguments& args) {
  const ArgValue* const part = find_set(args, kTurnedPart);
  const auto* const number = part == nullptr ? nullptr : std::get_if<double>(part);
  return number != nullptr && *number < 1.0 && has_yarn_of_heads(args);
}

Arguments heeded_arguments(Arguments args) {
  if (!has_yarn_of_heads(args)) return args;
  constexpr std::array kOtherScalings = {"use_rope_scaling", "rotary_seq_len_interpolation_factor",
                                         "rope_dynamic_factor"};
  for (const char* const name : kOtherScalings) args.erase(name);
  if (turns_more_than_said(args)) args.insert_or_assign(std::string(kTurnedPart), 1.0);
  return args;
}

}  // namespace shardwright
