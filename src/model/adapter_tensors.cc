// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_tensors.h"

#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "layout/adapter_shards.h"
#include "layout/expert_names.h"
#include "model/adapter_part_names.h"

namespace shardwright {
namespace {

// The other half of what ends so; empty for other names.
std::string partner_of(const std::string& name) {
  for (std::size_t i = 0; i < kInNames.megatron.size(); ++i) {
    for (const auto& [own, other] : {std::pair(kInNames.megatron[i], kOutNames.megatron[i]),
                                     std::pair(kOutNames.megatron[i], kInNames.megatron[i])}) {
      if (name.ends_with(own)) {
        return name.substr(0, name.size() - own.size()) + std::string(other);
      }
    }
  }
  return {};
}

bool has_end_of(std::string_view name, const AdapterPartNames& part) {
  if (name.ends_with(part.megatron[0])) return name.find(".adapter.") != std::string_view::npos;
  return name.ends_with(part.megatron[1]) || name.ends_with(part.megatron[2]);
}

}  // namespace

bool is_adapter_name(std::string_view name) {
  return has_end_of(name, kInNames) || has_end_of(name, kOutNames) || name.ends_with(kMagnitude) ||
         name.ends_with(kPeftMagnitude) || name_of_saved(name).has_value();
}

Result<std::optional<AdapterRanks>> adapter_ranks(std::span<const TensorDesc> tensors) {
  std::unordered_set<std::string_view> names;
  for (const TensorDesc& tensor : tensors) {
    if (is_adapter_name(tensor.name)) names.insert(tensor.name);
  }
  for (const TensorDesc& tensor : tensors) {
    if (!names.contains(tensor.name)) continue;
    const std::string& name = tensor.name;
    const std::string partner = partner_of(name);
    if (partner.empty() || names.contains(partner)) continue;
    return fail(Code::kUnmatchedTarget, "tensor {}: found no {} beside it, which is its other half",
                name, partner);
  }
  AdapterRanks ranks;
  const TensorDesc* first = nullptr;
  const TensorDesc* first_of_experts = nullptr;
  for (const TensorDesc& tensor : tensors) {
    const bool is_in = has_end_of(tensor.name, kInNames);
    const bool is_of_experts = !name_in_experts(tensor.name).empty();
    const int axes = tensor.shape.size();
    if (!is_in && !has_end_of(tensor.name, kOutNames)) continue;
    if (axes != 2 && (!is_of_experts || axes != 3)) continue;
    const std::int64_t own = tensor.shape[is_in ? axes - 2 : axes - 1];
    const TensorDesc*& seen = is_of_experts ? first_of_experts : first;
    std::optional<std::int64_t>& rank = is_of_experts ? ranks.experts : ranks.dense;
    if (seen == nullptr) {
      seen = &tensor;
      rank = own;
    } else if (own != *rank) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found rank {}, expected {} as in {}; adapters of one rank can be "
                  "converted, for Megatron has one setting for all",
                  tensor.name, own, *rank, seen->name);
    }
  }
  if (first == nullptr && first_of_experts == nullptr) return std::optional<AdapterRanks>();
  return ranks;
}

std::optional<std::string> adapted_module(std::string_view name, bool behind_parent) {
  const auto module_of = [&](std::string_view stem) {
    std::size_t dot = stem.rfind('.');
    if (behind_parent && dot != std::string_view::npos && dot > 0) dot = stem.rfind('.', dot - 1);
    return std::string(stem.substr(dot + 1));
  };
  for (const std::string_view end : {kOutNames.megatron[1], kOutNames.megatron[2]}) {
    if (name.ends_with(end)) return module_of(name.substr(0, name.size() - end.size()));
  }
  const std::size_t adapter = name.find(std::string(kAdapter) + ".");
  if (adapter == std::string_view::npos || !name.ends_with(kOutNames.megatron[0])) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(adapter + kAdapter.size() + 1);
  rest = rest.substr(0, rest.find('.'));
  const std::string module = module_of(name.substr(0, adapter));
  if (rest == "adapter_up") return module + "_up";
  if (rest == "adapter_gate") return module + "_gate";
  constexpr std::string_view kPart = "adapter_";
  if (rest.starts_with(kPart)) return "linear_" + std::string(rest.substr(kPart.size()));
  return module;
}

AdapterLayout adapter_layout(std::span<const TensorDesc> canonical) {
  AdapterLayout layout;
  for (const TensorDesc& tensor : canonical) {
    if (tensor.name.find(".adapter.adapter_") != std::string::npos) {
      layout.form = AdapterForm::kCanonical;
    }
    for (const AdapterPartNames& part : {kInNames, kOutNames}) {
      if (!has_end_of(tensor.name, part)) continue;
      if (!tensor.name.ends_with(part.megatron[0])) layout.form = AdapterForm::kSwift;
      const std::string_view name = name_in_experts(tensor.name);
      if (!name.empty() && tensor.shape.size() == 2) layout.of_all_experts.emplace(name);
    }
  }
  return layout;
}

bool is_in_rank_order(std::string_view name) {
  const std::optional<AdapterTensor> adapter = adapter_tensor(name);
  if (!adapter || adapter->part == AdapterTensor::Part::kIn) return false;
  const bool is_gated = adapter->module.ends_with(kGatedModule);
  if (!is_gated && !adapter->module.ends_with(".in_proj")) return false;
  if (adapter->is_swift && is_of_experts(*adapter)) return false;
  return adapter->is_swift || adapter->is_half || adapter->part == AdapterTensor::Part::kMagnitude;
}

}  // namespace shardwright
