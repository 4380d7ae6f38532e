// SPDX-License-Identifier: Apache-2.0
#include "canonical/dequantise.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

// The one chunk of stored fp4 pairs, as a tensor of values in the model's order of axes.
StoredTensor as_values(const StoredTensor& stored, const QuantisedTensor& joined) {
  StoredTensor values{{joined.desc.name, DType::kF4E2M1X2, joined.desc.shape},
                      ChunkList(joined.desc.shape.size())};
  Dims in_order;
  for (const std::int64_t axis : joined.stored_order) {
    in_order.push_back(joined.desc.shape[static_cast<int>(axis)]);
  }
  const Dims dense = row_major_strides(in_order);
  Dims strides = Dims::filled(dense.size(), 0);
  for (int i = 0; i < dense.size(); ++i) {
    strides[static_cast<int>(joined.stored_order[i])] = dense[i];
  }
  values.chunks.push_back(
      {Box::whole(joined.desc.shape), stored.chunks.file(0), stored.chunks.range(0), strides});
  return values;
}

// How many tensors become `dtype`, and what is ignored.
void tell_quantised(const ModelTensors& model, DType dtype, Notes& notes) {
  const auto tell = [&](std::ptrdiff_t count, std::string_view type) {
    if (count == 0) return;
    notes.push_back(fmt::format("dequantised {} tensor{}: {} to {}", count, count == 1 ? "" : "s",
                                type, torch_name(dtype)));
  };
  const auto fp4 = std::ranges::count_if(model.quantised, &QuantisedTensor::is_fp4);
  tell(std::ssize(model.quantised) - fp4, "fp8 e4m3");
  tell(fp4, "mxfp4");
  if (!model.ignored.empty()) {
    notes.push_back(fmt::format(
        "scales of activations and caches are ignored, the weights do not need them: {}",
        name_list(model.ignored)));
  }
}

}  // namespace

Result<ModelTensors> model_tensors(const Catalog& catalog, std::string_view config_json) {
  const QuantisationConfig config = SW_TRY(read_quantisation_config(config_json));
  return join_scales(descs_of(catalog), config);
}

void declare_quantised(const ModelTensors& model, DType dtype, Catalog& catalog,
                       std::vector<QuantisedSource>& quantised, Notes& notes) {
  tell_quantised(model, dtype, notes);
  for (const QuantisedTensor& joined : model.quantised) {
    StoredTensor& values = catalog.tensors[joined.values];
    if (joined.is_fp4) {
      values = as_values(values, joined);
      catalog.tensors[joined.scales].desc.dtype = DType::kF8E8M0;
    }
    quantised.push_back({joined.values, joined.scales, joined.block, joined.stride});
  }
}

std::vector<std::string> stored_names(const ModelTensors& model, const Catalog& catalog,
                                      const std::vector<std::string>& names) {
  const std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  std::vector<std::string> stored = names;
  for (const QuantisedTensor& joined : model.quantised) {
    if (!wanted.contains(joined.desc.name)) continue;
    stored.push_back(catalog.tensors[joined.values].desc.name);
    stored.push_back(catalog.tensors[joined.scales].desc.name);
  }
  return stored;
}

void keep_model_tensors(const ModelTensors& model, DType dtype, std::vector<DraftTensor>& drafts) {
  std::unordered_set<std::string_view> kept;
  for (const TensorDesc& desc : model.tensors) kept.insert(desc.name);
  for (const QuantisedTensor& joined : model.quantised) drafts[joined.values].desc.dtype = dtype;
  std::erase_if(drafts, [&](const DraftTensor& draft) { return !kept.contains(draft.desc.name); });
}

}  // namespace shardwright
