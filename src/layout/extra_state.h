// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// Whether a module is the norm behind the layers of a stack: the decoder's, BERT's, and T5's of
/// those that read; or the one in front of or behind those of a CLIP, SigLIP or RADIO tower. It is
/// Transformer Engine's wherever that is installed, whatever the layers are made of. Source:
/// TransformerBlock, clip_vit_model.py and radio.py in megatron/core.
[[nodiscard]] bool is_norm_around_layers(std::string_view module);

/// Whether a tensor is the weight of a linear that stands in the place of an attention or an MLP
/// (replace_with_linear), whose module has a state of its own. Other modules of these names have
/// none, whatever parameters they have.
[[nodiscard]] bool is_linear_in_place(std::string_view tensor);

/// Whether a module of that name, of a model of that spec, has a state of its own beside its
/// parameters. kKeep counts as Transformer Engine's.
[[nodiscard]] bool has_extra_state(std::string_view module, ModuleSpec spec);

/// The `_extra_state` entries that a model asks for when it is loaded from torch_dist: one per
/// linear and norm around layers, and for Transformer Engine also per norm, for each layer and
/// expert. `tensors` are stored tensors (stacked or numbered). Names are FQNs with their
/// `/shard_...` part, each once. Source: the modules' sharded_state_dict in
/// megatron/core/extensions/transformer_engine.py.
[[nodiscard]] std::vector<std::string> extra_state_names(std::span<const TensorDesc> tensors,
                                                         ModuleSpec spec);

}  // namespace shardwright
