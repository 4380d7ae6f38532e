// SPDX-License-Identifier: Apache-2.0
#include "plan/gate_rows.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "layout/expert_names.h"
#include "layout/layer_name.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

// Of a weight or bias, or of a state that has its shape: a flattened one has an axis less.
bool has_rows(const TensorDesc& desc, std::string_view parameter) {
  const bool is_bias = parameter.ends_with("linear_fc1.bias");
  if (!is_bias && !parameter.ends_with("linear_fc1.weight")) return false;
  int axes = is_bias ? 1 : 2;
  const std::optional<LayerName> layer = split_layer_name(parameter);
  if (layer && !layer->index) ++axes;
  if (name_in_experts(parameter).starts_with("linear_fc1.")) ++axes;
  return desc.shape.size() == axes;
}

GateBlocks blocks_in(const StoredGates& gates, const TensorDesc& desc) {
  const std::optional<StateName> state = split_state_name(desc.name);
  const std::string_view parameter = state ? state->tensor : std::string_view(desc.name);
  if (!has_rows(desc, parameter)) return {};
  return blocks_of(state ? gates.states : gates.weights, parameter);
}

// The rows of one target tensor, and those of what its views read.
class Moving {
 public:
  Moving(const Catalog& source, const StoredGates& from, const StoredGates& to, DraftTensor& tensor)
      : source_(source), from_(from), tensor_(tensor), wanted_(blocks_in(to, tensor.desc)) {}

  Status run() {
    const ViewList& views = tensor_.recipe.views;
    if (std::ranges::all_of(views, [&](const TensorView& view) { return stays(view); })) return {};
    SW_TRY(check_blocks(wanted_, tensor_.desc));
    ViewList moved;
    for (const TensorView& view : views) SW_TRY(move(view, moved));
    tensor_.recipe.views = std::move(moved);
    return {};
  }

 private:
  [[nodiscard]] const TensorDesc& read_by(const TensorView& view) const {
    return source_.tensors[view.source].desc;
  }

  // Rows that lie alike on both sides and are the same rows.
  [[nodiscard]] bool stays(const TensorView& view) const {
    const TensorDesc& read = read_by(view);
    const GateBlocks stored = blocks_in(from_, read);
    if (stored.rows == 0 && wanted_.rows == 0) return true;
    if (stored != wanted_) return false;
    const int axis = axis_of_rows(tensor_.desc);
    const int source_axis = axis_of_rows(read);
    return view.axis[axis] == source_axis && view.step[axis] == 1 &&
           view.box.origin[axis] == view.source_origin[source_axis] &&
           tensor_.desc.shape[axis] == read.shape[source_axis];
  }

  Status move(const TensorView& view, ViewList& moved) const {
    const TensorDesc& read = read_by(view);
    const GateBlocks stored = blocks_in(from_, read);
    SW_TRY(check_blocks(stored, read));
    const int axis = axis_of_rows(tensor_.desc);
    const std::int64_t gate_rows = tensor_.desc.shape[axis] / 2;
    const auto source_axis = static_cast<int>(view.axis[axis]);
    for (std::int64_t done = 0; done < view.box.shape[axis];) {
      TensorView part = view;
      const StoredRows made = stored_rows(wanted_, gate_rows, view.box.origin[axis] + done);
      std::int64_t count = std::min(made.count, view.box.shape[axis] - done);
      part.box.origin[axis] = made.first;
      if (source_axis >= 0) {
        const std::int64_t row = view.source_origin[source_axis] + done * view.step[axis];
        part.source_origin[source_axis] = row;
        if (stored.rows > 0) {
          const StoredRows own = stored_rows(stored, read.shape[source_axis] / 2, row);
          part.source_origin[source_axis] = own.first;
          count = view.step[axis] == 1 ? std::min(count, own.count) : 1;
        }
      }
      part.box.shape[axis] = count;
      moved.push_back(part);
      done += count;
    }
    return {};
  }

  const Catalog& source_;
  const StoredGates& from_;
  DraftTensor& tensor_;
  GateBlocks wanted_;
};

}  // namespace

Status move_gates(const Catalog& source, const StoredGates& from, const StoredGates& to,
                  std::vector<DraftTensor>& tensors) {
  const auto are_any = [](const StoredGates& gates) {
    return gates.weights.are_any() || gates.states.are_any();
  };
  if (!are_any(from) && !are_any(to)) return {};
  for (DraftTensor& tensor : tensors) {
    SW_TRY(Moving(source, from, to, tensor).run());
  }
  return {};
}

}  // namespace shardwright
