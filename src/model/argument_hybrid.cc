// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/translated.h"
#include "model/argument_facts.h"

namespace shardwright {
namespace {

using Layer = LanguageTensors::Layer;

bool has_part(const Layer& layer, std::string_view prefix) {
  return std::ranges::any_of(layer,
                             [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

// Whether a layer is what its letter says; letters of other kinds say nothing to us.
bool is_of_kind(const Layer& layer, char letter) {
  const bool has_router = layer.contains("mlp.router.weight");
  switch (letter) {
    case 'M':
      return has_part(layer, "mixer.");
    case '*':
      return has_part(layer, "self_attention.");
    case '-':
      return has_part(layer, "mlp.") && !has_router;
    case 'E':
      return has_router;
    default:
      return true;
  }
}

void check_pattern(const LanguageTensors& model, StatedArguments& stated) {
  const std::optional<std::string> pattern = hybrid_pattern(stated);
  const std::int64_t layers = model.layer_count();
  if (!pattern || layers == 0) return;
  const bool is_newer = stated.text("hybrid_layer_pattern").value_or("").empty();
  const std::string_view name = is_newer ? "hybrid_override_pattern" : "hybrid_layer_pattern";
  stated.hold(name);
  if (std::ssize(*pattern) != layers) {
    stated.contradict(name, translated("there are {} layers", layers));
    return;
  }
  for (const auto& [number, layer] : model.layers()) {
    if (is_of_kind(layer, (*pattern)[static_cast<std::size_t>(number)])) continue;
    stated.contradict(name, translated("layer {} is of another kind", number));
    return;
  }
}

void check_mixer(const Layer& layer, StatedArguments& stated) {
  const auto logarithm = layer.find("mixer.A_log");
  if (logarithm == layer.end() || logarithm->second->shape.size() != 1) return;
  const std::int64_t shown = logarithm->second->shape[0];
  stated.expect("mamba_num_heads", stated.number({"mamba_num_heads"}), shown, *logarithm->second);
  const auto width = stated.number({"mamba_head_dim"});
  const auto output = layer.find("mixer.out_proj.weight");
  if (output == layer.end() || output->second->shape.size() != 2 || shown == 0) return;
  const std::int64_t inner = output->second->shape[1];
  stated.expect("mamba_head_dim", width, inner / shown, *output->second);
  // The projection of B, apart in torch_dist, has the state of each group.
  const auto projection = layer.find("mixer.in_proj.weight.B");
  const auto groups = stated.number({"mamba_num_groups"});
  const auto state = stated.number({"mamba_state_dim"});
  if (projection == layer.end() || projection->second->shape.size() != 2 || !groups || !state) {
    return;
  }
  for (const std::string_view name : {"mamba_num_groups", "mamba_state_dim"}) stated.hold(name);
  const std::int64_t rows = projection->second->shape[0];
  if (rows == *groups * *state) return;
  const bool is_whole = *groups > 0 && rows % *groups == 0;
  stated.contradict("mamba_state_dim",
                    is_whole
                        ? translated("{} shows {} for {} groups", shown_by(*projection->second),
                                     rows / *groups, *groups)
                        : shown_by(*projection->second) + translated(" has not the rows for it"));
}

}  // namespace

void check_hybrid(const LanguageTensors& model, StatedArguments& stated) {
  check_pattern(model, stated);
  for (const auto& [number, layer] : model.layers()) check_mixer(layer, stated);
}

}  // namespace shardwright
