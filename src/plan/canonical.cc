// SPDX-License-Identifier: Apache-2.0
#include "plan/canonical.h"

#include "layout/layer_name.h"

namespace shardwright {

bool is_optimizer_name(std::string_view name) {
  return name.starts_with("optimizer.") || name.starts_with("chained_") ||
         name.starts_with("mimo.");
}

std::vector<CanonicalTensor> canonical_tensors(const Catalog& catalog) {
  std::vector<CanonicalTensor> tensors;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const TensorDesc& desc = catalog.tensors[i].desc;
    if (is_optimizer_name(desc.name)) continue;
    const std::optional<LayerName> name = split_layer_name(desc.name);
    if (!name || name->index || desc.shape.empty()) {
      tensors.push_back({desc, i, -1});
      continue;
    }
    TensorDesc layer{{}, desc.dtype, {}};
    for (int axis = 1; axis < desc.shape.size(); ++axis) layer.shape.push_back(desc.shape[axis]);
    for (std::int64_t index = 0; index < desc.shape[0]; ++index) {
      layer.name = join_layer_name(name->stack, index, name->rest);
      tensors.push_back({layer, i, index});
    }
  }
  return tensors;
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
