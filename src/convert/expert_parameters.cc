// SPDX-License-Identifier: Apache-2.0
#include "convert/expert_parameters.h"

#include <algorithm>
#include <map>
#include <optional>

#include "model/adapter_tensors.h"
#include "model/expert_parameter.h"

namespace shardwright {
namespace {

constexpr std::string_view kIn = ".lora_A.weight";
constexpr std::string_view kOut = ".lora_B.weight";

// `...mlp.experts` and `.gate_up_proj`, and which half it is.
struct ParameterName {
  std::string_view experts;
  std::string_view parameter;
  bool is_in = false;
};

std::optional<ParameterName> parameter_name(std::string_view name) {
  const bool is_in = name.ends_with(kIn);
  if (!is_in && !name.ends_with(kOut)) return std::nullopt;
  name.remove_suffix(kIn.size());
  for (const std::string_view end : kExpertParameters) {
    if (!name.ends_with(end)) continue;
    const std::size_t dot = name.rfind('.');
    return ParameterName{name.substr(0, dot), name.substr(dot), is_in};
  }
  return std::nullopt;
}

// A view of [experts, a, b] as those of a matrix.
class Folding {
 public:
  Folding(const TensorDesc& desc, bool is_in) : shape_(desc.shape), is_in_(is_in) {}

  [[nodiscard]] Dims shape() const {
    return is_in_ ? Dims{shape_[0] * shape_[1], shape_[2]} : Dims{shape_[1], shape_[2] * shape_[0]};
  }

  void add(const TensorView& view, ViewList& views) const {
    // Of A the experts' rows lie one behind another; of B the experts' columns of a rank do.
    const int outer = is_in_ ? 0 : 2;
    for (std::int64_t i = 0; i < view.box.shape[outer]; ++i) {
      TensorView part = view;
      if (view.axis[outer] >= 0) {
        part.source_origin[static_cast<int>(view.axis[outer])] += i * view.step[outer];
      }
      const int rows = 1;
      const int columns = is_in_ ? 2 : 0;
      const std::int64_t at = view.box.origin[outer] + i;
      part.box = {{view.box.origin[rows], view.box.origin[columns]},
                  {view.box.shape[rows], view.box.shape[columns]}};
      part.box.origin[is_in_ ? 0 : 1] += at * (is_in_ ? shape_[1] : shape_[0]);
      part.axis = {view.axis[rows], view.axis[columns]};
      part.step = {view.step[rows], view.step[columns]};
      views.push_back(part);
    }
  }

 private:
  Dims shape_;
  bool is_in_;
};

}  // namespace

bool is_of_expert_parameter(std::string_view name) { return parameter_name(name).has_value(); }

std::set<std::string> expert_parameters(const std::vector<DraftTensor>& tensors) {
  std::map<std::string_view, std::set<std::string_view>> layers;
  for (const DraftTensor& tensor : tensors) {
    if (const auto name = parameter_name(tensor.desc.name)) {
      layers[name->experts].insert(name->parameter);
    }
  }
  // How deep a layer's tensors lie tells which parameter they are of, by what is targeted of it.
  const bool are_alike = std::ranges::all_of(
      layers, [&](const auto& layer) { return layer.second == layers.begin()->second; });
  std::set<std::string> targets;
  for (const auto& [experts, parameters] : layers) {
    const std::size_t word = experts.rfind('.', experts.rfind('.') - 1) + 1;
    const std::string_view module = experts.substr(are_alike ? word : kPeftPrefix.size());
    for (const std::string_view parameter : parameters) {
      targets.insert(std::string(module) + std::string(parameter));
    }
  }
  return targets;
}

void store_expert_parameters(std::vector<DraftTensor>& tensors) {
  std::set<std::string> outer;  // experts whose `down_proj` has an adapter
  for (const DraftTensor& tensor : tensors) {
    const auto name = parameter_name(tensor.desc.name);
    if (name && name->parameter == ".down_proj") outer.emplace(name->experts);
  }
  for (DraftTensor& tensor : tensors) {
    const auto name = parameter_name(tensor.desc.name);
    if (!name) continue;
    const Folding folding(tensor.desc, name->is_in);
    ViewList views;
    for (const TensorView& view : tensor.recipe.views) folding.add(view, views);
    std::string stored(name->experts);
    if (name->parameter == ".gate_up_proj" && outer.contains(stored)) stored += ".base_layer";
    tensor.desc.name = stored + std::string(name->is_in ? kIn : kOut);
    tensor.desc.shape = folding.shape();
    tensor.recipe.views = std::move(views);
  }
}

}  // namespace shardwright
