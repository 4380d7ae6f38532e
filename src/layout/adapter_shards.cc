// SPDX-License-Identifier: Apache-2.0
#include "layout/adapter_shards.h"

#include <array>
#include <utility>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

using Part = AdapterTensor::Part;

constexpr std::string_view kBridge = ".adapter.";
constexpr std::array<std::pair<std::string_view, Part>, 3> kBridgeEnds = {{
    {"linear_in.weight", Part::kIn},
    {"linear_out.weight", Part::kOut},
    {"weight_magnitude", Part::kMagnitude},
}};
constexpr std::array<std::pair<std::string_view, Part>, 4> kSwiftEnds = {{
    {".lora_A.default.weight", Part::kIn},
    {".lora_A.weight", Part::kIn},
    {".lora_B.default.weight", Part::kOut},
    {".lora_B.weight", Part::kOut},
}};
constexpr std::array<std::string_view, 5> kCanonicalModules = {
    "adapter_q.", "adapter_k.", "adapter_v.", "adapter_gate.", "adapter_up."};

// Megatron-Bridge saves the parts of a mixer's fused projection as tensors of their own.
constexpr std::string_view kMixerPart = ".in_proj.adapter.linear_out.weight.";

constexpr std::string_view kFirst = ".linear_fc1";
constexpr std::string_view kSecond = ".linear_fc2";

// `name` up to the last word, which must be `module`; nullopt for other names.
std::optional<std::string_view> parent_of(std::string_view name, std::string_view module) {
  if (!name.ends_with(module)) return std::nullopt;
  return name.substr(0, name.size() - module.size());
}

std::int64_t last_axis(const TensorDesc& tensor) { return tensor.shape[tensor.shape.size() - 1]; }

bool is_shared_out(const std::optional<AdapterTensor>& adapter) {
  return adapter && adapter->part == Part::kOut && !adapter->is_swift && !adapter->is_half &&
         adapter->module.ends_with(kFirst);
}

}  // namespace

std::optional<AdapterTensor> adapter_tensor(std::string_view name) {
  for (const auto& [end, part] : kSwiftEnds) {
    if (!name.ends_with(end)) continue;
    return AdapterTensor{name.substr(0, name.size() - end.size()), part, true, false};
  }
  const std::size_t at = name.rfind(kBridge);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = name.substr(at + kBridge.size());
  bool is_half = false;
  for (const std::string_view module : kCanonicalModules) {
    if (!rest.starts_with(module)) continue;
    rest.remove_prefix(module.size());
    is_half = module == "adapter_gate." || module == "adapter_up.";
    break;
  }
  for (const auto& [end, part] : kBridgeEnds) {
    if (rest == end) return AdapterTensor{name.substr(0, at), part, false, is_half};
  }
  return std::nullopt;
}

std::optional<std::string> name_of_saved(std::string_view name) {
  const std::size_t at = name.find(kSavedWhole);
  if (at == 0 || at == std::string_view::npos || name[at - 1] != '.') return std::nullopt;
  return std::string(name.substr(0, at)) + std::string(name.substr(at + kSavedWhole.size()));
}

bool is_of_experts(const AdapterTensor& adapter) {
  // Also where they are numbered: `experts.local_experts.3`.
  return adapter.module.find(".experts.") != std::string_view::npos;
}

bool is_of_adapter(std::string_view name) { return adapter_tensor(name) || name_of_saved(name); }

ShardRule adapter_rule(const AdapterTensor& adapter, const ShardRule& base, int axes,
                       bool is_gated) {
  ShardRule rule;
  rule.expert_axis = base.expert_axis;
  rule.is_expert = base.is_expert;
  const int rows = base.expert_axis + 1;
  const bool is_row_parallel = base.axis == rows + 1;
  // Linears of experts that are shared out themselves have none of ms-swift's.
  const bool is_whole = adapter.is_swift && base.is_expert;
  switch (adapter.part) {
    case Part::kIn:
      if (is_row_parallel) {
        rule.axis = axes - 1;
      } else if (!adapter.is_swift) {
        rule.axis = rows;
      }
      break;
    case Part::kOut:
      if (!adapter.is_swift || base.axis == rows) rule.axis = rows;
      rule.in_two =
          adapter.module.ends_with(kFirst) && !adapter.is_swift && (is_gated || adapter.is_half);
      break;
    case Part::kMagnitude:
      if (!is_row_parallel) rule.axis = rows;
      break;
  }
  if (is_whole) rule.axis = -1;
  return rule;
}

GatedFirsts::GatedFirsts(std::span<const TensorDesc> tensors) {
  for (const TensorDesc& tensor : tensors) {
    if (tensor.shape.empty()) continue;
    const std::optional<AdapterTensor> adapter = adapter_tensor(tensor.name);
    std::optional<std::string_view> parent;
    if (adapter) {
      if (adapter->part == Part::kIn) parent = parent_of(adapter->module, kSecond);
    } else {
      parent = parent_of(tensor.name, "linear_fc2.weight");
      if (parent && parent->ends_with('.')) parent->remove_suffix(1);
    }
    if (parent) columns_.insert_or_assign(std::string(*parent), last_axis(tensor));
  }
}

std::optional<std::int64_t> GatedFirsts::columns_beside(std::string_view name) const {
  constexpr std::string_view kModule = "linear_fc1.";
  const std::size_t at = name.rfind(kModule);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view parent = name.substr(0, at);
  if (parent.ends_with('.')) parent.remove_suffix(1);
  const auto found = columns_.find(std::string(parent));
  return found == columns_.end() ? std::nullopt : std::optional(found->second);
}

bool GatedFirsts::has(const TensorDesc& tensor) const {
  const std::optional<AdapterTensor> adapter = adapter_tensor(tensor.name);
  if (adapter && !is_shared_out(adapter)) return false;
  const std::optional<std::int64_t> columns = columns_beside(tensor.name);
  if (!columns) return false;
  const int rows = tensor.shape.size() - (tensor.name.ends_with(".bias") ? 1 : 2);
  return rows >= 0 && is_gated(tensor.shape[rows], *columns);
}

bool GatedFirsts::is_unknown(const TensorDesc& tensor) const {
  return is_shared_out(adapter_tensor(tensor.name)) && !columns_beside(tensor.name);
}

Status check_adapter_shares(const TensorDesc& tensor, const GatedFirsts& gated,
                            const ParallelConfig& config) {
  const std::string_view name = tensor.name;
  const std::optional<AdapterTensor> adapter = adapter_tensor(name);
  if (adapter && is_of_experts(*adapter)) {
    return fail(Code::kUnsupportedFormat,
                "tensor {}: found an adapter of routed experts, which trainers save as torch_dist "
                "only; keep it in that",
                printable(name));
  }
  if (config.tensor * config.expert * config.expert_tensor == 1) return {};
  std::string_view what;
  if (name.find(kMixerPart) != std::string_view::npos ||
      (adapter && !adapter->is_swift && adapter->part != Part::kIn &&
       adapter->module.ends_with(".in_proj"))) {
    what = "a mixer's in_proj";
  }
  if (!what.empty()) {
    return fail(Code::kUnsupportedFormat,
                "tensor {}: found an adapter of {}, which no rule tells the shares of several "
                "ranks of; keep it in torch_dist",
                printable(name), what);
  }
  if (config.tensor == 1 || !gated.is_unknown(tensor)) return {};
  return fail(
      Code::kUnsupportedFormat,
      "tensor {}: found neither linear_fc2.weight nor its adapter beside it, expected one to "
      "tell whether each of several tensor ranks has rows of gate and of up; keep it in "
      "torch_dist",
      printable(name));
}

}  // namespace shardwright
