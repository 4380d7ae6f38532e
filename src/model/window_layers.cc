// SPDX-License-Identifier: Apache-2.0
#include "model/window_layers.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kSliding = "sliding_attention";
constexpr std::string_view kFullAttention = "full_attention";

Status check_window_count(std::string_view name, std::size_t found, std::int64_t layers) {
  if (std::cmp_equal(found, layers)) return {};
  return fail(Code::kConfigMissing, "{}: found {} entries, expected {}, one per layer", name, found,
              layers);
}

}  // namespace

WindowedLayers every_so_many_whole(std::int64_t period, std::int64_t layers) {
  WindowedLayers windowed;
  for (std::int64_t layer = 1; layer <= layers; ++layer) {
    windowed.push_back(layer % period == 0 ? 0 : 1);
  }
  return windowed;
}

Result<WindowedLayers> from_layer_types(const std::vector<std::string>& types,
                                        std::int64_t layers) {
  SW_TRY(check_window_count("layer_types", types.size(), layers));
  WindowedLayers windowed;
  for (const std::string& type : types) {
    if (type != kSliding && type != kFullAttention) {
      return fail(Code::kConfigMissing, "layer_types: found '{}', expected '{}' or '{}'", type,
                  kSliding, kFullAttention);
    }
    windowed.push_back(type == kSliding ? 1 : 0);
  }
  return windowed;
}

std::vector<std::string> to_layer_types(const WindowedLayers& windowed) {
  std::vector<std::string> types;
  for (const std::int64_t has_window : windowed) {
    types.emplace_back(has_window != 0 ? kSliding : kFullAttention);
  }
  return types;
}

ArgValue to_skip_frequency(WindowedLayers windowed) {
  const auto first_whole = std::ranges::find(windowed, 0);
  if (first_whole == windowed.end()) return ArgValue{};
  const std::int64_t period = first_whole - windowed.begin() + 1;
  if (windowed == every_so_many_whole(period, std::ssize(windowed))) return ArgValue{period};
  return ArgValue{std::move(windowed)};
}

Result<WindowedLayers> from_skip_frequency(const ArgValue& frequency, std::int64_t layers) {
  if (std::holds_alternative<std::monostate>(frequency)) {
    return WindowedLayers(static_cast<std::size_t>(layers), 1);
  }
  if (const auto* list = std::get_if<WindowedLayers>(&frequency)) {
    SW_TRY(check_window_count("window_attn_skip_freq", list->size(), layers));
    return *list;
  }
  const auto* period = std::get_if<std::int64_t>(&frequency);
  if (period == nullptr || *period < 1) {
    return fail(Code::kConfigMissing,
                "window_attn_skip_freq: found {}, expected None, a number from 1 or a list",
                to_string(frequency));
  }
  return every_so_many_whole(*period, layers);
}

}  // namespace shardwright
