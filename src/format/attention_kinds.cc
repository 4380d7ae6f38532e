// SPDX-License-Identifier: Apache-2.0
#include "format/attention_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/layer_name.h"
#include "layout/state_name.h"
#include "model/layer_kinds.h"
#include "model/window_layers.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

// Sizes that only such models have.
constexpr std::string_view kOwnSizes[] = {"global_head_dim", "global_kv_channels"};
constexpr std::string_view kOneName = "self_attention.";

WindowedLayers windows_of(const Arguments& arguments) {
  const ArgValue* number = find_set(arguments, "num_layers");
  const auto* layers = number == nullptr ? nullptr : std::get_if<std::int64_t>(number);
  const ArgValue* told = window_argument(arguments);
  if (layers == nullptr || *layers < 1 || *layers > kMaxLayers || told == nullptr) return {};
  return from_window_argument(*told, *layers).value_or(WindowedLayers());
}

// Empty for other models.
WindowedLayers kinds_of(const Arguments& arguments) {
  const auto is_set = [&](std::string_view name) { return find_set(arguments, name) != nullptr; };
  return std::ranges::any_of(kOwnSizes, is_set) ? windows_of(arguments) : WindowedLayers();
}

void tell_kind(const WindowedLayers& windows, std::string& tensor) {
  const std::optional<LayerName> name = split_layer_name(tensor);
  if (!name || !name->index || !is_main_stack(name->stack)) return;
  if (!name->rest.starts_with(kOneName) || *name->index >= std::ssize(windows)) return;
  const bool slides = windows[static_cast<std::size_t>(*name->index)] != 0;
  tensor = join_layer_name(name->stack, *name->index,
                           fmt::format("{}.{}", slides ? kSlidingAttention : kGlobalAttention,
                                       name->rest.substr(kOneName.size())));
}

}  // namespace

void tell_attention_kinds(Checkpoint& checkpoint) {
  // Megatron-Bridge's own say it in run_config.yaml alone.
  const Arguments arguments = checkpoint.arguments.empty()
                                  ? read_run_config(checkpoint.run_config).value_or(Arguments())
                                  : checkpoint.arguments;
  tell_attention_kinds(arguments, checkpoint.catalog);
}

void tell_attention_kinds(const Arguments& arguments, Catalog& catalog) {
  const WindowedLayers windows = kinds_of(arguments);
  for (std::size_t layer = 0; layer < windows.size(); ++layer) {
    const std::string kind(windows[layer] != 0 ? kSlidingAttention : kGlobalAttention);
    catalog.kind_stacks[kind].push_back(static_cast<std::int64_t>(layer));
  }
  if (windows.empty()) return;
  for (StoredTensor& tensor : catalog.tensors) {
    const auto state = split_state_name(tensor.desc.name);
    if (!state) {
      tell_kind(windows, tensor.desc.name);
      continue;
    }
    std::string parameter(state->tensor);
    tell_kind(windows, parameter);
    tensor.desc.name = std::string(state->prefix) + parameter;
  }
}

void tell_attention_kinds(const Arguments& arguments, std::span<TensorDesc> tensors) {
  const WindowedLayers windows = kinds_of(arguments);
  for (TensorDesc& tensor : tensors) tell_kind(windows, tensor.name);
}

}  // namespace shardwright
