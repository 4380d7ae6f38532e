// SPDX-License-Identifier: Apache-2.0
#include "model/layer_kinds.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kLinear = "linear_attention";
constexpr std::string_view kFull = "full_attention";
// The lists have one entry per layer.

struct Letter {
  char letter = 0;
  std::string_view kind;
};
// megatron/core/ssm/mamba_hybrid_layer_allocation.py
constexpr std::array kLetters = {Letter{'M', kLinear}, Letter{'*', kFull}, Letter{'-', "mlp"},
                                 Letter{'E', "moe"}};

bool is_pattern(const ConfigRule& rule) { return rule.kind == ConfigRule::Kind::kBlockPattern; }

/// HF's other words for the same kinds. A layer whose tokens an indexer chooses is one of full
/// attention.
std::string_view today(std::string_view kind) {
  if (kind == "mamba") return kLinear;
  if (kind == "attention" || kind == "indexed_attention") return kFull;
  return kind;
}

std::unexpected<Error> unreadable(std::string_view name, const std::string& found,
                                  std::string_view expected) {
  return fail(Code::kConfigMissing, "{}: found {}, expected {}; correct it", name, found, expected);
}

Result<LayerKinds> kinds_of_list(const ConfigRule& rule, const std::vector<std::string>& list) {
  LayerKinds kinds;
  for (const std::string& word : list) {
    const std::string_view kind = today(word);
    const bool is_known = std::ranges::find(kLetters, kind, &Letter::kind) != kLetters.end();
    if (!is_known || (!is_pattern(rule) && kind != kLinear && kind != kFull)) {
      return unreadable(rule.hf[0], fmt::format("'{}'", word),
                        is_pattern(rule) ? "linear_attention, full_attention, mlp or moe"
                                         : "linear_attention or full_attention");
    }
    kinds.emplace_back(kind);
  }
  return kinds;
}

/// Letters of a hybrid model's layers. Megatron may mark where pipeline stages begin (|) and add
/// the layers of multi-token prediction behind a slash.
Result<LayerKinds> kinds_of_letters(std::string_view name, std::string_view letters) {
  LayerKinds kinds;
  for (const char letter : letters.substr(0, letters.find('/'))) {
    if (letter == '|') continue;
    const auto entry = std::ranges::find(kLetters, letter, &Letter::letter);
    if (entry == kLetters.end()) {
      return unreadable(name, fmt::format("'{}'", letter), "letters of M, *, - and E");
    }
    kinds.emplace_back(entry->kind);
  }
  return kinds;
}

/// Full attention every `interval` layers.
LayerKinds alternating(std::int64_t interval, std::int64_t layers) {
  LayerKinds kinds;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    kinds.emplace_back((layer + 1) % interval == 0 ? kFull : kLinear);
  }
  return kinds;
}

Result<LayerKinds> kinds_of_interval(std::string_view name, const ArgValue& value,
                                     std::int64_t layers) {
  const auto* interval = std::get_if<std::int64_t>(&value);
  if (interval == nullptr || *interval < 1) {
    return unreadable(name, to_string(value), "a whole number of layers");
  }
  return alternating(*interval, layers);
}

/// The third name of a rule lists the numbers of the layers with full attention, counted from 1,
/// as Kimi Linear's files do; nothing where the file has no such list.
Result<std::optional<LayerKinds>> kinds_of_numbers(const ConfigRule& rule, const Arguments& hf,
                                                   std::int64_t layers) {
  const ArgValue* value = rule.hf.size() > 2 ? find_set(hf, rule.hf[2]) : nullptr;
  if (value == nullptr) return std::optional<LayerKinds>();
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(value);
  LayerKinds kinds(static_cast<std::size_t>(layers), std::string(kLinear));
  const auto is_layer = [layers](std::int64_t number) { return number >= 1 && number <= layers; };
  if (numbers == nullptr || !std::ranges::all_of(*numbers, is_layer)) {
    return unreadable(rule.hf[2], to_string(*value), translated("numbers from 1 to {}", layers));
  }
  for (const std::int64_t number : *numbers) kinds[static_cast<std::size_t>(number - 1)] = kFull;
  return std::optional(std::move(kinds));
}

Status check_layer_count(std::string_view name, const LayerKinds& kinds, std::int64_t layers) {
  if (std::ssize(kinds) == layers) return {};
  return fail(Code::kConfigMissing, "{}: found {} layers, expected {}; make them agree", name,
              kinds.size(), layers);
}

}  // namespace

Result<std::optional<LayerKinds>> layer_kinds_from_hf(const ConfigRule& rule, const Arguments& hf,
                                                      std::int64_t layers) {
  if (layers > kMaxLayers) {
    return fail(Code::kLimit, "layers: found {}, expected at most {}", layers, kMaxLayers);
  }
  std::optional<LayerKinds> listed;
  if (const ArgValue* value = find_set(hf, rule.hf[0])) {
    const auto* list = std::get_if<std::vector<std::string>>(value);
    if (list == nullptr) return unreadable(rule.hf[0], to_string(*value), "a list of kinds");
    listed = SW_TRY(kinds_of_list(rule, *list));
    SW_TRY(check_layer_count(rule.hf[0], *listed, layers));
  }
  std::optional<LayerKinds> numbered = SW_TRY(kinds_of_numbers(rule, hf, layers));
  if (listed && numbered && *listed != *numbered) {
    return fail(Code::kConfigMissing,
                "config.json: found {} = {}, expected the layers that {} lists; make them agree",
                rule.hf[2], to_string(*find_set(hf, rule.hf[2])), rule.hf[0]);
  }
  if (numbered) listed = std::move(numbered);
  const ArgValue* value = find_set(hf, rule.hf[1]);
  if (value == nullptr && !listed && rule.fallback) value = &*rule.fallback;
  if (value == nullptr) return listed;
  const auto* text = std::get_if<std::string>(value);
  if (is_pattern(rule) && text == nullptr) {
    return unreadable(rule.hf[1], to_string(*value), "a letter per layer");
  }
  LayerKinds kinds = is_pattern(rule) ? SW_TRY(kinds_of_letters(rule.hf[1], *text))
                                      : SW_TRY(kinds_of_interval(rule.hf[1], *value, layers));
  SW_TRY(check_layer_count(rule.hf[1], kinds, layers));
  if (listed && *listed != kinds) {
    return fail(Code::kConfigMissing,
                "config.json: found {} = {}, expected the layers that {} lists; make them agree",
                rule.hf[1], to_string(*value), rule.hf[0]);
  }
  return std::optional(std::move(kinds));
}

ArgValue layer_kinds_argument(const ConfigRule& rule, const LayerKinds& kinds) {
  if (is_pattern(rule)) {
    std::string letters;
    for (const std::string& kind : kinds) {
      letters += std::ranges::find(kLetters, kind, &Letter::kind)->letter;
    }
    return ArgValue{letters};
  }
  const auto first_full = std::ranges::find(kinds, kFull);
  const std::int64_t interval = first_full - kinds.begin() + 1;
  if (first_full != kinds.end() && kinds == alternating(interval, std::ssize(kinds))) {
    return ArgValue{interval};
  }
  std::vector<std::int64_t> list;
  for (const std::string& kind : kinds) list.push_back(kind == kLinear ? 1 : 0);
  return ArgValue{std::move(list)};
}

Result<LayerKinds> layer_kinds_from_argument(const ConfigRule& rule, const ArgValue& argument,
                                             std::int64_t layers) {
  if (layers > kMaxLayers) {
    return fail(Code::kLimit, "layers: found {}, expected at most {}", layers, kMaxLayers);
  }
  LayerKinds kinds;
  const auto* text = std::get_if<std::string>(&argument);
  const auto* list = std::get_if<std::vector<std::int64_t>>(&argument);
  if (is_pattern(rule)) {
    if (text == nullptr) return unreadable(rule.args[0], to_string(argument), "letters");
    kinds = SW_TRY(kinds_of_letters(rule.args[0], *text));
  } else if (list != nullptr) {
    for (const std::int64_t is_linear : *list) kinds.emplace_back(is_linear != 0 ? kLinear : kFull);
  } else {
    kinds = SW_TRY(kinds_of_interval(rule.args[0], argument, layers));
  }
  SW_TRY(check_layer_count(rule.args[0], kinds, layers));
  return kinds;
}

}  // namespace shardwright
