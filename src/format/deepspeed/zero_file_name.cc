// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_file_name.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace shardwright {
namespace {

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::optional<ZeroFileName> parse_zero_file(std::string_view name) {
  constexpr std::array<std::string_view, 2> kPrecisions = {"bf16_", "fp16_"};
  ZeroFileName found;
  const bool names_precision = std::ranges::any_of(
      kPrecisions, [&](std::string_view precision) { return take_word(name, precision); });
  if (take_word(name, "zero_pp_rank_")) {
    found.data_rank = take_number(name);
    if (!found.data_rank || !take_word(name, "_")) return std::nullopt;
  } else if (names_precision) {
    return std::nullopt;
  }
  if (!take_word(name, "mp_rank_")) return std::nullopt;
  const std::optional<std::int64_t> model_rank = take_number(name);
  if (!model_rank) return std::nullopt;
  found.model_rank = *model_rank;
  if (name == "_model_states.pt") return found;
  found.holds = ZeroFileName::Holds::kOptimizer;
  return name == "_optim_states.pt" && found.data_rank ? std::optional(found) : std::nullopt;
}

std::optional<LayerFileName> parse_layer_file(std::string_view name) {
  if (!take_word(name, "layer_")) return std::nullopt;
  const std::optional<std::int64_t> layer = take_number(name);
  if (!layer || !take_word(name, "-model_")) return std::nullopt;
  const std::optional<std::int64_t> rank = take_number(name);
  if (!rank || name != "-model_states.pt") return std::nullopt;
  return LayerFileName{*layer, *rank};
}

std::optional<std::int64_t> parse_uncut_layer_file(std::string_view name) {
  if (!take_word(name, "layer_")) return std::nullopt;
  const std::optional<std::int64_t> layer = take_number(name);
  return name == "-model_states.pt" ? layer : std::nullopt;
}

}  // namespace shardwright
