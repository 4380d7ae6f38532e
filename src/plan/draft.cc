// SPDX-License-Identifier: Apache-2.0
#include "plan/draft.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "layout/layer_name.h"
#include "layout/module_spec.h"

namespace shardwright {
namespace {

DType target_dtype(const DraftOptions& options, DType source, bool pinned) {
  return options.dtype && is_castable_float(source) && !pinned ? *options.dtype : source;
}

// A view whose target is the Megatron side of a block.
TensorView view_of_hf(const Block& block, std::uint32_t source) {
  return {Box{block.megatron_origin, block.shape}, source, block.hf_origin, block.hf_axis,
          block.hf_step};
}

// Appends the views whose target is the HF side of a block. Steps on the HF side (interleaved rows)
// make one view per row.
void append_hf_views(const Block& block, int hf_axes, const CanonicalTensor& source,
                     ViewList& views) {
  const int lead = source.layer >= 0 ? 1 : 0;
  TensorView view{Box{block.hf_origin, Dims::filled(hf_axes, 1)},
                  source.stored,
                  {},
                  Dims::filled(hf_axes, -1),
                  Dims::filled(hf_axes, 1)};
  if (lead == 1) view.source_origin.push_back(source.layer);
  int stepped_axis = -1;
  for (int axis = 0; axis < block.shape.size(); ++axis) {
    view.source_origin.push_back(block.megatron_origin[axis]);
    if (block.hf_axis[axis] < 0) continue;
    const int h = static_cast<int>(block.hf_axis[axis]);
    view.axis[h] = axis + lead;
    view.box.shape[h] = block.shape[axis];
    if (block.hf_step[axis] > 1 && block.shape[axis] > 1) stepped_axis = axis;
  }
  if (stepped_axis < 0) {
    views.push_back(view);
    return;
  }
  const int h = static_cast<int>(block.hf_axis[stepped_axis]);
  view.box.shape[h] = 1;
  for (std::int64_t t = 0; t < block.shape[stepped_axis]; ++t) {
    views.push_back(view);
    view.box.origin[h] += block.hf_step[stepped_axis];
    view.source_origin[stepped_axis + lead] += 1;
  }
}

// Moves a layer's tensor into a stack: one more axis in front.
void append_stacked(DraftTensor& layer, std::int64_t index, DraftTensor& stack) {
  const ViewList views = std::exchange(layer.recipe.views, {});
  for (const TensorView& view : views) {
    TensorView lifted{{{index}, {1}}, view.source, view.source_origin, {-1}, {1}};
    for (int axis = 0; axis < view.box.axes(); ++axis) {
      lifted.box.origin.push_back(view.box.origin[axis]);
      lifted.box.shape.push_back(view.box.shape[axis]);
      lifted.axis.push_back(view.axis[axis]);
      lifted.step.push_back(view.step[axis]);
    }
    stack.recipe.views.push_back(lifted);
  }
}

// The layers of one stack: what each holds, by the name inside the layer.
using Layers = std::map<std::int64_t, std::map<std::string, std::size_t, std::less<>>>;

// The constants that fill what no view covers: of layers that are stacked one is enough.
bool fill_alike(const DraftTensor& a, const DraftTensor& b) {
  return !a.recipe.fill || !b.recipe.fill || a.recipe.fill == b.recipe.fill;
}

// What makes layers alike.
enum class Likeness : std::uint8_t { kWhole, kButForDtypes };

// `holds_all`: the numbers have no gaps.
bool are_alike(const Layers& layers, const std::vector<DraftTensor>& tensors, bool holds_all,
               Likeness likeness) {
  const auto& first = layers.begin()->second;
  std::int64_t expected = 0;
  for (const auto& [index, parts] : layers) {
    if ((holds_all && index != expected++) || parts.size() != first.size()) return false;
    for (const auto& [rest, position] : parts) {
      const auto same = first.find(rest);
      if (same == first.end()) return false;
      const DraftTensor& a = tensors[position];
      const DraftTensor& b = tensors[same->second];
      const bool has_its_dtype =
          a.desc.dtype == b.desc.dtype || likeness == Likeness::kButForDtypes;
      if (!(a.desc.shape == b.desc.shape) || !has_its_dtype || a.recipe.add != b.recipe.add ||
          !fill_alike(a, b) || a.desc.shape.size() == kMaxAxes) {
        return false;
      }
    }
  }
  return true;
}

// Layers that a stack holds together, and those of each kind that have modules of their own.
struct LayerStack {
  Layers all;
  std::map<std::string, Layers, std::less<>> by_kind;

  // Whether every layer is like the others of its kind: otherwise none is stacked.
  [[nodiscard]] bool is_regular(const std::vector<DraftTensor>& tensors,
                                Likeness likeness = Likeness::kWhole) const {
    return (all.empty() || are_alike(all, tensors, true, likeness)) &&
           std::ranges::all_of(by_kind, [&](const auto& kind) {
             return are_alike(kind.second, tensors, false, likeness);
           });
  }
};

using LayerStacks = std::map<std::string, LayerStack, std::less<>>;

// MTP layers are never stacked.
LayerStacks find_stacks(const std::vector<DraftTensor>& tensors, LayerKeys keys) {
  LayerStacks stacks;
  if (keys == LayerKeys::kAllNumbered) return stacks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::optional<LayerName> name = split_layer_name(tensors[i].desc.name);
    if (!name || !name->index || !is_stackable(name->stack)) continue;
    if (keys == LayerKeys::kNumbered && is_main_stack(name->stack)) continue;
    LayerStack& stack = stacks[std::string(name->stack)];
    const std::string_view kind = kind_of_layer(name->rest);
    (kind.empty() ? stack.all
                  : stack.by_kind[std::string(kind)])[*name->index][std::string(name->rest)] = i;
  }
  return stacks;
}

Status check_dtypes_of(const Layers& layers, const std::vector<DraftTensor>& tensors) {
  for (const auto& [index, parts] : layers) {
    for (const auto& [rest, position] : parts) {
      const TensorDesc& desc = tensors[position].desc;
      const TensorDesc& first = tensors[layers.begin()->second.at(rest)].desc;
      if (desc.dtype == first.dtype) continue;
      return fail(
          Code::kDtypeUnsupported,
          "tensor {}: found dtype {}, expected {} as of {}: Megatron stores layers that are "
          "alike as one tensor; --dtype makes all of them one",
          desc.name, torch_name(desc.dtype), torch_name(first.dtype), first.name);
    }
  }
  return {};
}

}  // namespace

std::vector<TensorDesc> descs_of(std::span<const DraftTensor> tensors) {
  std::vector<TensorDesc> descs;
  descs.reserve(tensors.size());
  for (const DraftTensor& tensor : tensors) descs.push_back(tensor.desc);
  return descs;
}

std::vector<DraftTensor> stack_layers(std::vector<DraftTensor> tensors, LayerKeys keys) {
  const LayerStacks stacks = find_stacks(tensors, keys);
  std::vector<bool> is_stacked(tensors.size(), false);
  std::unordered_map<std::size_t, DraftTensor> stacked_at;  // at the place of layer 0's tensor
  const auto stack_one = [&](const std::string& stack, const Layers& layers) {
    for (const auto& [rest, position] : layers.begin()->second) {
      DraftTensor whole{{stack + "." + rest, tensors[position].desc.dtype, {}},
                        {{}, tensors[position].recipe.fill, tensors[position].recipe.add},
                        std::nullopt};
      whole.desc.shape.push_back(static_cast<std::int64_t>(layers.size()));
      for (const std::int64_t extent : tensors[position].desc.shape) {
        whole.desc.shape.push_back(extent);
      }
      std::int64_t row = 0;
      for (const auto& [index, parts] : layers) {
        const std::size_t part = parts.find(rest)->second;
        if (!whole.recipe.fill) whole.recipe.fill = tensors[part].recipe.fill;
        append_stacked(tensors[part], row++, whole);
        is_stacked[part] = true;
      }
      whole.recipe.views.shrink_to_fit();
      stacked_at.emplace(position, std::move(whole));
    }
  };
  for (const auto& [name, stack] : stacks) {
    if (!stack.is_regular(tensors)) continue;
    if (!stack.all.empty()) stack_one(name, stack.all);
    for (const auto& [kind, layers] : stack.by_kind) stack_one(name, layers);
  }
  std::vector<DraftTensor> result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (const auto found = stacked_at.find(i); found != stacked_at.end()) {
      result.push_back(std::move(found->second));
    } else if (!is_stacked[i]) {
      result.push_back(std::move(tensors[i]));
    }
  }
  return result;
}

Status check_layer_dtypes(const std::vector<DraftTensor>& tensors, LayerKeys keys) {
  for (const auto& [name, stack] : find_stacks(tensors, keys)) {
    if (stack.is_regular(tensors) || !stack.is_regular(tensors, Likeness::kButForDtypes)) continue;
    SW_TRY(check_dtypes_of(stack.all, tensors));
    for (const auto& [kind, layers] : stack.by_kind) SW_TRY(check_dtypes_of(layers, tensors));
  }
  return {};
}

Result<std::vector<DraftTensor>> draft_from_hf(const Correspondence& correspondence,
                                               const Catalog& source, const DraftOptions& options) {
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < source.tensors.size(); ++i) {
    by_name.emplace(source.tensors[i].desc.name, i);
  }
  std::vector<DraftTensor> tensors;
  tensors.reserve(correspondence.megatron.size());
  for (const MappedTensor& mapped : correspondence.megatron) {
    const std::optional<double> fill = mapped.constant ? mapped.constant : mapped.rest;
    DraftTensor tensor{mapped.desc, {{}, fill, mapped.offset}, std::nullopt};
    tensor.desc.dtype = target_dtype(options, mapped.desc.dtype, mapped.pinned_dtype);
    if (mapped.vocabulary) tensor.true_rows = mapped.desc.shape[0];
    tensors.push_back(std::move(tensor));
  }
  for (const Block& block : correspondence.blocks) {
    const std::string& name = correspondence.hf[block.hf].desc.name;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      return fail(Code::kUnmatchedSource, "tensor {}: not in the source checkpoint", name);
    }
    tensors[block.megatron].recipe.views.push_back(view_of_hf(block, found->second));
  }
  return stack_layers(std::move(tensors), options.layer_keys);
}

Result<std::vector<DraftTensor>> draft_to_hf(const Correspondence& correspondence,
                                             std::span<const CanonicalTensor> canonical,
                                             const DraftOptions& options) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < canonical.size(); ++i) by_name.emplace(canonical[i].desc.name, i);
  std::vector<DraftTensor> tensors;
  tensors.reserve(correspondence.hf.size());
  for (const MappedTensor& mapped : correspondence.hf) {
    DraftTensor tensor{mapped.desc, {}, std::nullopt};
    tensor.desc.dtype = target_dtype(options, mapped.desc.dtype, mapped.pinned_dtype);
    tensors.push_back(std::move(tensor));
  }
  for (const Block& block : correspondence.blocks) {
    if (block.repeats) continue;
    const MappedTensor& megatron = correspondence.megatron[block.megatron];
    const auto found = by_name.find(megatron.desc.name);
    if (found == by_name.end()) {
      return fail(Code::kUnmatchedTarget, "tensor {}: the checkpoint lacks {}",
                  correspondence.hf[block.hf].desc.name, megatron.desc.name);
    }
    DraftTensor& tensor = tensors[block.hf];
    if (megatron.offset != 0.0) tensor.recipe.add = -megatron.offset;
    append_hf_views(block, tensor.desc.shape.size(), canonical[found->second], tensor.recipe.views);
  }
  return tensors;
}

namespace {

// The whole of a canonical tensor, cast where it may be.
DraftTensor draft_whole(const CanonicalTensor& source, const DraftOptions& options) {
  DraftTensor tensor{source.desc, {{view_of_canonical(source)}, std::nullopt, 0.0}, std::nullopt};
  const std::string& name = source.desc.name;
  const bool pinned = is_optimizer_name(name) || name.ends_with("router.expert_bias");
  tensor.desc.dtype = target_dtype(options, source.desc.dtype, pinned);
  return tensor;
}

}  // namespace

std::vector<DraftTensor> draft_identity(const Catalog& source, const DraftOptions& options) {
  std::vector<DraftTensor> tensors;
  tensors.reserve(source.tensors.size());
  for (std::uint32_t i = 0; i < source.tensors.size(); ++i) {
    tensors.push_back(draft_whole({source.tensors[i].desc, i}, options));
  }
  return tensors;
}

std::vector<DraftTensor> draft_layers(const Catalog& source, const DraftOptions& options) {
  std::vector<DraftTensor> tensors;
  std::vector<CanonicalTensor> canonical;
  for (std::uint32_t i = 0; i < source.tensors.size(); ++i) {
    append_canonical(source, i, source.tensors[i].desc.name, canonical);
  }
  for (const CanonicalTensor& tensor : canonical) tensors.push_back(draft_whole(tensor, options));
  return tensors;
}

void name_for_spec(ModuleSpec spec, std::vector<DraftTensor>& tensors) {
  std::vector<TensorDesc> descs = names_in_spec(descs_of(tensors), spec);
  for (std::size_t i = 0; i < descs.size(); ++i) tensors[i].desc.name = std::move(descs[i].name);
}

void order_like(std::span<const TensorDesc> order, std::vector<DraftTensor>& tensors) {
  std::unordered_map<std::string_view, std::size_t> position;
  for (std::size_t i = 0; i < order.size(); ++i) position.emplace(order[i].name, i);
  std::ranges::stable_sort(tensors, {}, [&](const DraftTensor& tensor) {
    const auto found = position.find(tensor.desc.name);
    return found == position.end() ? order.size() : found->second;
  });
}

void resize_rows(DraftTensor& tensor, std::int64_t rows) {
  const std::int64_t old_rows = tensor.desc.shape[0];
  tensor.desc.shape[0] = rows;
  if (rows > old_rows) tensor.recipe.fill = 0.0;
  for (std::size_t i = 0; i < tensor.recipe.views.size(); ++i) {
    TensorView view = tensor.recipe.views[i];
    view.box.shape[0] =
        std::min(view.box.shape[0], std::max<std::int64_t>(rows - view.box.origin[0], 0));
    tensor.recipe.views.set(i, view);
  }
}

void take_rows(DraftTensor& tensor, std::uint32_t table, std::uint32_t other,
               std::span<const std::int64_t> places) {
  ViewList views;
  for (const TensorView& view : tensor.recipe.views) {
    if (view.source != table) {
      views.push_back(view);
      continue;
    }
    // The target's axis along which rows lie; without one all of it is of the same row.
    int axis = 0;
    while (axis < view.axis.size() && view.axis[axis] != 0) ++axis;
    const bool has_axis = axis < view.axis.size();
    const std::int64_t extent = has_axis ? view.box.shape[axis] : 1;
    const std::int64_t step = has_axis ? view.step[axis] : 1;
    const std::int64_t first = view.source_origin[0];
    const auto append = [&](std::int64_t from, std::int64_t to, std::uint32_t source,
                            std::int64_t row) {
      if (from == to) return;
      TensorView part = view;
      part.source = source;
      part.source_origin[0] = row;
      if (has_axis) {
        part.box.origin[axis] += from;
        part.box.shape[axis] = to - from;
      }
      views.push_back(part);
    };
    std::map<std::int64_t, std::int64_t> taken;  // along the axis, to the row of `other`
    for (std::size_t k = 0; k < places.size(); ++k) {
      const std::int64_t distance = places[k] - first;
      if (distance < 0 || distance % step != 0 || distance / step >= extent) continue;
      taken.emplace(distance / step, static_cast<std::int64_t>(k));
    }
    std::int64_t next = 0;
    for (const auto& [at, row] : taken) {
      append(next, at, table, first + next * step);
      append(at, at + 1, other, row);
      next = at + 1;
    }
    append(next, extent, table, first + next * step);
  }
  tensor.recipe.views = std::move(views);
}

}  // namespace shardwright
