// SPDX-License-Identifier: Apache-2.0
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::string_view kStates = "optimizer.state.";

}  // namespace

std::optional<StateName> split_state_name(std::string_view name) {
  const std::size_t at = name.find(kStates);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = at + kStates.size();
  const std::size_t dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot + 1 == name.size()) return std::nullopt;
  const std::string_view kind = name.substr(begin, dot - begin);
  return StateName{name.substr(0, dot + 1), name.substr(at),
                   kind == kOwnMasters ? kStateKinds[0] : kind, name.substr(dot + 1)};
}

std::string join_state_name(std::string_view kind, std::string_view tensor) {
  return std::string(kStates).append(kind).append(".").append(tensor);
}

std::string_view name_with_states(std::string_view parameter) {
  constexpr std::array<std::string_view, 2> kTwice = {"lm_head.output_layer.",
                                                      "embedding.position_embeddings."};
  for (const std::string_view first : kTwice) {
    if (parameter.starts_with(first)) return parameter.substr(first.find('.') + 1);
  }
  return parameter;
}

}  // namespace shardwright
