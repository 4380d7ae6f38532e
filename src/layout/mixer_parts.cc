// SPDX-License-Identifier: Apache-2.0
#include "layout/mixer_parts.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "layout/layer_name.h"

namespace shardwright {
namespace {

// Parts of one tensor of a mixer that torch_dist has as tensors of their own, in their order.
constexpr std::array<std::string_view, 10> kMixerParts = {
    ".query", ".key", ".value", ".z", ".x", ".B", ".C", ".dt", ".beta", ".alpha"};

constexpr std::array<std::string_view, 5> kMambaProjection = {".z", ".x", ".B", ".C", ".dt"};
constexpr std::array<std::string_view, 3> kMambaConvolution = {".x", ".B", ".C"};
constexpr std::array<std::string_view, 6> kDeltaProjection = {".query", ".key",  ".value",
                                                              ".z",     ".beta", ".alpha"};
constexpr std::array<std::string_view, 3> kDeltaConvolution = {".query", ".key", ".value"};

constexpr std::array<std::string_view, 5> kWholeTensors = {
    "in_proj.weight", "conv1d.weight", "conv1d.bias", "conv1d_weight", "conv1d_bias"};

std::int64_t axis_extent(const TensorDesc* tensor, int axis) {
  return tensor == nullptr || tensor->shape.size() <= axis ? 0 : tensor->shape[axis];
}

bool is_of_mamba(std::string_view mixer) { return mixer.ends_with("mixer."); }

}  // namespace

// Mamba's in_proj is [z; x; B; C; dt] and its convolution [x; B; C], those of a gated delta net are
// [query; key; value; z; beta; alpha] and [query; key; value].
std::vector<MixerPart> mixer_parts(const TensorDesc& tensor, const TensorsByName& tensors) {
  if (is_in_foreign_module(tensor.name)) return {};
  std::size_t at = tensor.name.rfind(".in_proj.weight");
  if (at == std::string::npos) at = tensor.name.rfind(".conv1d");
  if (at == std::string::npos || tensor.shape.empty()) return {};
  const std::string mixer = tensor.name.substr(0, at + 1);
  const std::string_view leaf = std::string_view(tensor.name).substr(mixer.size());
  if (std::ranges::find(kWholeTensors, leaf) == kWholeTensors.end()) return {};  // a part already
  const auto find = [&](std::string_view name) -> const TensorDesc* {
    const auto found = tensors.find(mixer + std::string(name));
    return found == tensors.end() ? nullptr : found->second;
  };
  const TensorDesc* decays = find("A_log");
  if (decays != nullptr && decays->shape.size() == 2) return {};  // Mamba 1, which has no heads
  const std::int64_t heads = axis_extent(decays, 0);
  const std::int64_t inner = axis_extent(find("out_proj.weight"), 1);
  const std::int64_t rows = tensor.shape[0];
  if (heads == 0 || inner == 0) return {};
  if (!is_of_mamba(mixer)) {
    if (leaf == "in_proj.weight") {
      const std::int64_t keys = (rows - 2 * inner - 2 * heads) / 2;
      return {{".query", keys}, {".key", keys},   {".value", inner},
              {".z", inner},    {".beta", heads}, {".alpha", heads}};
    }
    const std::int64_t keys = (rows - inner) / 2;
    return {{".query", keys}, {".key", keys}, {".value", inner}};
  }
  if (leaf == "in_proj.weight") {
    const std::int64_t state = (rows - 2 * inner - heads) / 2;
    return {{".z", inner}, {".x", inner}, {".B", state}, {".C", state}, {".dt", heads}};
  }
  const std::int64_t state = (rows - inner) / 2;
  return {{".x", inner}, {".B", state}, {".C", state}};
}

std::pair<std::string_view, int> split_mixer_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  const bool is_mixer = name.find(".in_proj.weight.") != std::string_view::npos ||
                        name.find(".conv1d.") != std::string_view::npos;
  if (is_in_foreign_module(name) || !is_mixer || dot == std::string_view::npos) return {name, -1};
  const auto part = std::ranges::find(kMixerParts, name.substr(dot));
  if (part == kMixerParts.end()) return {name, -1};
  return {name.substr(0, dot), static_cast<int>(part - kMixerParts.begin())};
}

std::string_view lacking_mixer_part(std::string_view whole, const std::vector<int>& places) {
  const bool is_projection = whole.ends_with(".in_proj.weight");
  const std::size_t at = whole.rfind(is_projection ? ".in_proj." : ".conv1d.");
  const bool is_mamba = at != std::string_view::npos && is_of_mamba(whole.substr(0, at + 1));
  const auto lacking = [&](std::span<const std::string_view> needed) -> std::string_view {
    for (const std::string_view suffix : needed) {
      const auto place = std::ranges::find(kMixerParts, suffix) - kMixerParts.begin();
      if (std::ranges::find(places, static_cast<int>(place)) == places.end()) return suffix;
    }
    return {};
  };
  if (is_mamba) return is_projection ? lacking(kMambaProjection) : lacking(kMambaConvolution);
  return is_projection ? lacking(kDeltaProjection) : lacking(kDeltaConvolution);
}

}  // namespace shardwright
