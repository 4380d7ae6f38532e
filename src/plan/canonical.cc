// SPDX-License-Identifier: Apache-2.0
#include "plan/canonical.h"

#include <algorithm>
#include <utility>

#include "layout/layer_name.h"
#include "layout/piece_limit.h"

namespace shardwright {

bool is_optimizer_name(std::string_view name) {
  return name.starts_with("optimizer.") || name.starts_with("chained_") ||
         name.starts_with("mimo.");
}

bool has_megatron_names(const Catalog& catalog) {
  return std::any_of(catalog.tensors.begin(), catalog.tensors.end(), [](const auto& tensor) {
    const std::string& name = tensor.desc.name;
    // The last are Flux's; its makers' own files have blocks of that name with other modules.
    return name.contains("decoder.") || name.contains("embedding.word_embeddings.") ||
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
