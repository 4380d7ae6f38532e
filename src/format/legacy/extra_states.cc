// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/extra_states.h"

#include <string_view>

#include "layout/extra_state.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

// The module of a parameter of a rank's state dict.
std::string module_of(std::string_view name) {
  return std::string(name.substr(0, name.rfind('.')));
}

}  // namespace

ExtraStates::ExtraStates(const std::vector<LegacyShard>& shards, bool is_local,
                         bool final_norm_has_state, bool output_is_head)
    : is_local_(is_local),
      final_norm_has_state_(final_norm_has_state),
      output_is_head_(output_is_head) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string module = module_of(shards[i].desc.name);
    first_.emplace(module, i);
    if (is_linear_in_place(shards[i].desc.name)) linears_.insert(module);
    last_[module] = i;
  }
}

void ExtraStates::append_before(const std::string& name, std::size_t i,
                                LegacyStateDict& dict) const {
  const std::string module = module_of(name);
  const bool is_behind_attention = module.ends_with(".self_attention.linear_proj") ||
                                   module.ends_with(".cross_attention.linear_proj");
  if (is_local_ || first_.at(module) != i || !is_behind_attention) return;
  dict.push_back({module_of(module) + ".core_attention._extra_state",
                  LegacyEntry::Kind::kTensor,
                  DType::kU8,
                  {0}});
}

void ExtraStates::append(const std::string& name, std::size_t i, LegacyStateDict& dict) const {
  const std::string module = module_of(name);
  if (last_.at(module) != i || is_in_foreign_module(module)) return;
  using Kind = LegacyEntry::Kind;
  // Linears that are Megatron's own whatever the others are: a head, and what RADIO begins with.
  const bool is_output = module == "output_layer" || module.ends_with(".output_layer");
  if (output_is_head_ && is_output) return;
  if (is_output || module.ends_with("vision_model.embedder") ||
      module.ends_with("vision_model.video_embedder")) {
    dict.push_back({module + "._extra_state", Kind::kNone, DType::kU8, {}});
    return;
  }
  const std::string_view leaf = std::string_view(module).substr(module.rfind('.') + 1);
  if (is_local_) {
    if (leaf.starts_with("linear_") || leaf == "eh_proj") {
      dict.push_back({module + "._extra_state", Kind::kNone, DType::kU8, {}});
    } else if (final_norm_has_state_ && is_norm_around_layers(module)) {
      dict.push_back({module + "._extra_state", Kind::kTensor, DType::kU8, {0}});
    }
    return;
  }
  if (!linears_.contains(module) && !has_extra_state(module, ModuleSpec::kTransformerEngine)) {
    return;
  }
  dict.push_back({module + "._extra_state", Kind::kTensor, DType::kU8, {0}});
}

}  // namespace shardwright
