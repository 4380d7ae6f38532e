// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/dist_opt_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "layout/mlite_layout.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

// What stands in front of the names of a chunk's tensors.
struct ChunkName {
  std::int64_t stage = 0;
  std::int64_t chunk = 0;  // of the stage's
  bool has_number = false;
  std::string_view rest;
};

// `model_pp1_vpp0.`, `model_pp1.`, `model1.`, or nothing where one chunk is the whole model.
ChunkName split_chunk(std::string_view name) {
  ChunkName split;
  std::string_view rest = name;
  const auto take = [&](std::string_view word, std::int64_t& number) {
    if (!rest.starts_with(word)) return false;
    std::string_view digits = rest.substr(word.size());
    const auto found = take_number(digits);
    if (!found || *found < 0) return false;
    number = *found;
    rest = digits;
    return true;
  };
  split.has_number = take("model_pp", split.stage);
  if (split.has_number) {
    take("_vpp", split.chunk);
  } else {
    split.has_number = take("model", split.chunk);
  }
  if (!split.has_number || !rest.starts_with('.')) return {0, 0, false, name};
  split.rest = rest.substr(1);
  return split;
}

// Of a state, its parameter.
std::string_view parameter_of(std::string_view name) {
  const auto state = split_state_name(name);
  return state ? state->tensor : name;
}

std::int64_t stages_of(const Catalog& catalog) {
  std::int64_t stages = 1;
  for (const StoredTensor& tensor : catalog.tensors) {
    stages = std::max(stages, split_chunk(parameter_of(tensor.desc.name)).stage + 1);
  }
  return stages;
}

}  // namespace

bool has_dist_opt_names(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const std::string_view rest = split_chunk(tensor.desc.name).rest;
    const bool is_of_stack = rest.starts_with("layers.") || rest.starts_with("model.layers.");
    return is_of_stack && split_mlite_expert(rest).has_value();
  });
}

void name_as_mlite(Catalog& catalog) {
  const std::int64_t stages = stages_of(catalog);
  for (StoredTensor& tensor : catalog.tensors) {
    const auto state = split_state_name(tensor.desc.name);
    const ChunkName name = split_chunk(state ? state->tensor : tensor.desc.name);
    const std::string number =
        name.has_number ? fmt::format("_pp{}", name.chunk * stages + name.stage) : "";
    tensor.desc.name =
        fmt::format("{}model{}.{}", state ? state->prefix : std::string_view(), number, name.rest);
  }
}

}  // namespace shardwright
