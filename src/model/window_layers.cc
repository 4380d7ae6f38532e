// SPDX-License-Identifier: Apache-2.0
#include "model/window_layers.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "model/layer_count.h"

namespace shardwright {
namespace {

constexpr std::string_view kSliding = "sliding_attention";
constexpr std::string_view kFullAttention = "full_attention";

WindowedLayers alternating_windows(const WindowedLayers& pattern, std::int64_t layers) {
  const std::int64_t cycle = pattern[0] + pattern[1];
  WindowedLayers windowed;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    windowed.push_back(cycle > 0 && layer % cycle < pattern[0] ? 1 : 0);
  }
  return windowed;
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
  SW_TRY(check_layer_count("layer_types", types.size(), layers));
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
    SW_TRY(check_layer_count("window_attn_skip_freq", list->size(), layers));
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

ArgValue to_attention_pattern(const WindowedLayers& windowed) {
  const auto first_whole = std::ranges::find(windowed, 0);
  const auto next = std::find(first_whole, windowed.end(), 1);
  const WindowedLayers pattern = {first_whole - windowed.begin(), next - first_whole};
  return alternating_windows(pattern, std::ssize(windowed)) == windowed
             ? ArgValue{pattern}
             : ArgValue{to_layer_types(windowed)};
}

Result<WindowedLayers> from_window_argument(const ArgValue& argument, std::int64_t layers) {
  if (const auto* types = std::get_if<std::vector<std::string>>(&argument)) {
    return from_layer_types(*types, layers);
  }
  const auto* pattern = std::get_if<WindowedLayers>(&argument);
  const bool is_pattern = pattern != nullptr && pattern->size() == 2 && layers != 2;
  if (!is_pattern) return from_skip_frequency(argument, layers);
  const auto is_count = [layers](std::int64_t count) { return count >= 0 && count <= layers; };
  if (std::ranges::all_of(*pattern, is_count) && (*pattern)[0] + (*pattern)[1] > 0) {
    return alternating_windows(*pattern, layers);
  }
  return fail(Code::kConfigMissing, "interleaved_attn_pattern: found {}, expected two counts",
              to_string(argument));
}

const ArgValue* window_argument(const Arguments& arguments) {
  const ArgValue* pattern = find_set(arguments, "interleaved_attn_pattern");
  return pattern != nullptr ? pattern : find_set(arguments, "window_attn_skip_freq");
}

}  // namespace shardwright
