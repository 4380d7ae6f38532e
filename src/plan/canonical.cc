// SPDX-License-Identifier: Apache-2.0
#include "plan/canonical.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "layout/layer_name.h"
#include "layout/piece_limit.h"
#include "layout/wrapped_name.h"

namespace shardwright {
namespace {

// What trainers call an optimizer in what they save with torch DCP, `optimizers.0` among them.
constexpr std::array<std::string_view, 6> kOptimizerKeys = {
    "optimizer", "optimizers", "optim", "opt", "optimizer_state_dict", "optim_state_dict"};

// `app.optim.`, `optimizers.0.`: what stands before a part of torch's state dict of an optimizer.
bool is_optimizer_key(std::string_view path) {
  const auto last = [&] { return path.substr(path.find_last_of('.') + 1); };
  const bool is_numbered = last().find_first_not_of("0123456789") == std::string_view::npos;
  if (path.contains('.')) {
    // Composer's go by their class: `optimizers.AdamW`.
    const std::string_view outer = path.substr(0, path.find_last_of('.'));
    const bool is_named = outer == "optimizers" || outer.ends_with(".optimizers");
    if (is_numbered || is_named) path = outer;
  }
  return std::ranges::find(kOptimizerKeys, last()) != kOptimizerKeys.end();
}

// `app.optim.state.W.exp_avg`, `opt.param_groups.0.lr`, `optim.param_groups`.
bool has_optimizer_key(std::string_view name) {
  for (const std::string_view part : {".state", ".param_groups"}) {
    for (std::size_t at = name.find(part); at != std::string_view::npos;
         at = name.find(part, at + 1)) {
      const std::string_view behind = name.substr(at + part.size());
      const bool is_whole = behind.empty() || behind.front() == '.';
      if (is_whole && is_optimizer_key(name.substr(0, at))) return true;
    }
  }
  return false;
}

// The same without any key: nothing else of a model is called so.
bool is_bare_state(std::string_view name) {
  constexpr std::array<std::string_view, 6> kKinds = {
      ".exp_avg", ".exp_avg_sq", ".max_exp_avg_sq", ".step", ".momentum_buffer", ".master_param"};
  if (name == "param_groups" || name.starts_with("param_groups.")) return true;
  return name.starts_with("state.") && ends_as_any(name, kKinds);
}

// What stands behind `decoder.` in Megatron's names. Hugging Face's have decoders too: OPT's and
// Whisper's with layers of other modules, T5's with blocks, those of sound with numbers.
bool is_in_megatron_decoder(std::string_view rest) {
  if (rest.starts_with("final_layernorm.") || rest.starts_with("final_norm.")) return true;
  constexpr std::string_view kLayers = "layers.";
  if (!rest.starts_with(kLayers)) return false;
  rest.remove_prefix(kLayers.size());
  const std::size_t number = rest.find_first_not_of("0123456789");
  if (number != 0 && number != rest.npos && rest[number] == '.') rest.remove_prefix(number + 1);
  constexpr std::array<std::string_view, 7> kOthers = {"self_attn.",
                                                       "self_attn_layer_norm.",
                                                       "encoder_attn.",
                                                       "encoder_attn_layer_norm.",
                                                       "final_layer_norm.",
                                                       "fc1.",
                                                       "fc2."};
  return std::ranges::none_of(kOthers,
                              [&](std::string_view other) { return rest.starts_with(other); });
}

bool is_in_megatron_decoder_of(std::string_view name) {
  constexpr std::string_view kDecoder = "decoder.";
  for (std::size_t at = name.find(kDecoder); at != name.npos; at = name.find(kDecoder, at + 1)) {
    const bool is_word = at == 0 || name[at - 1] == '.';
    if (is_word && is_in_megatron_decoder(name.substr(at + kDecoder.size()))) return true;
  }
  return false;
}

}  // namespace

bool is_optimizer_name(std::string_view name) {
  return name.starts_with("optimizer.") || name.starts_with("chained_") ||
         name.starts_with("mimo.") || is_bare_state(name) || has_optimizer_key(name);
}

bool has_megatron_names(const Catalog& catalog) {
  return std::any_of(catalog.tensors.begin(), catalog.tensors.end(), [](const auto& tensor) {
    const std::string& name = tensor.desc.name;
    // The last are Flux's; its makers' own files have blocks of that name with other modules.
    return is_in_megatron_decoder_of(name) || name.contains("embedding.word_embeddings.") ||
           (name.starts_with("double_blocks.") && name.contains(".self_attention."));
  });
}

bool has_megatron_roots(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const std::string_view name = without_parts(tensor.desc.name);
    constexpr std::string_view kDecoder = "decoder.";
    if (name.starts_with(kDecoder)) return is_in_megatron_decoder(name.substr(kDecoder.size()));
    return name.starts_with("embedding.word_embeddings.") ||
           (name.starts_with("double_blocks.") && name.contains(".self_attention."));
  });
}

void append_canonical(const Catalog& catalog, std::uint32_t index, std::string_view name,
                      std::vector<CanonicalTensor>& tensors) {
  const TensorDesc& desc = catalog.tensors[index].desc;
  const std::optional<LayerName> parts = split_layer_name(name);
  if (!parts || parts->index || desc.shape.empty()) {
    tensors.push_back({{std::string(name), desc.dtype, desc.shape}, index, -1});
    return;
  }
  const auto kind = catalog.kind_stacks.find(parts->rest.substr(0, parts->rest.find('.')));
  const bool holds_some =
      kind != catalog.kind_stacks.end() && std::cmp_equal(kind->second.size(), desc.shape[0]);
  TensorDesc layer{{}, desc.dtype, {}};
  for (int axis = 1; axis < desc.shape.size(); ++axis) layer.shape.push_back(desc.shape[axis]);
  for (std::int64_t number = 0; number < desc.shape[0]; ++number) {
    const auto row = static_cast<std::size_t>(number);
    layer.name =
        join_layer_name(parts->stack, holds_some ? kind->second[row] : number, parts->rest);
    tensors.push_back({layer, index, number});
  }
}

std::vector<CanonicalTensor> canonical_tensors(const Catalog& catalog) {
  std::vector<CanonicalTensor> tensors;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string& name = catalog.tensors[i].desc.name;
    if (!is_optimizer_name(name)) append_canonical(catalog, i, name, tensors);
  }
  return tensors;
}

std::vector<TensorDesc> descs_of(std::span<const CanonicalTensor> tensors) {
  std::vector<TensorDesc> descs;
  descs.reserve(tensors.size());
  for (const CanonicalTensor& tensor : tensors) descs.push_back(tensor.desc);
  return descs;
}

Result<std::vector<TensorDesc>> canonical_descs(const Catalog& catalog) {
  SW_TRY(check_piece_count(descs_of(catalog)));
  std::vector<TensorDesc> descs;
  for (CanonicalTensor& tensor : canonical_tensors(catalog)) {
    descs.push_back(std::move(tensor.desc));
  }
  return descs;
}

TensorView view_of_canonical(const CanonicalTensor& tensor) {
  const int axes = tensor.desc.shape.size();
  const int lead = tensor.layer >= 0 ? 1 : 0;
  TensorView view{Box::whole(tensor.desc.shape),
                  tensor.stored,
                  Dims::filled(axes + lead, 0),
                  {},
                  Dims::filled(axes, 1)};
  if (lead == 1) view.source_origin[0] = tensor.layer;
  for (int axis = 0; axis < axes; ++axis) view.axis.push_back(axis + lead);
  return view;
}

}  // namespace shardwright
