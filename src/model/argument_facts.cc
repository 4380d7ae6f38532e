// SPDX-License-Identifier: Apache-2.0
#include "model/argument_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/translated.h"
#include "layout/layer_name.h"
#include "layout/wrapped_name.h"
#include "model/arguments.h"

namespace shardwright {
namespace {

// No size of a model is larger; products of a few of them stay within 64 bits.
constexpr std::int64_t kMostSize = std::int64_t{1} << 30;

}  // namespace

LanguageTensors::LanguageTensors(std::span<const TensorDesc> canonical) {
  std::string_view language;
  for (const TensorDesc& tensor : canonical) {
    if (language.empty()) language = language_prefix(tensor.name);
  }
  // Of a model that reads and writes, the layers that write: arguments count the others apart.
  const bool writes = std::ranges::any_of(canonical, [](const TensorDesc& tensor) {
    return tensor.name.starts_with("decoder.layers.");
  });
  for (const TensorDesc& tensor : canonical) {
    std::string_view name = tensor.name;
    if (!name.starts_with(language)) continue;
    name.remove_prefix(language.size());
    const std::optional<LayerName> layer = split_layer_name(name);
    if (!layer || !layer->index) {
      outside_.emplace(name, &tensor);
    } else if (writes && layer->stack.starts_with("encoder.")) {
      continue;
    } else if (is_main_stack(layer->stack)) {
      // Hyper-connections of hybrid models are wrapped around the layer.
      constexpr std::string_view kWrapped = "inner_layer.";
      std::string_view rest = layer->rest;
      if (rest.starts_with(kWrapped)) rest.remove_prefix(kWrapped.size());
      layers_[*layer->index].emplace(rest, &tensor);
    } else if (layer->stack == "mtp.layers") {
      prediction_layers_ = std::max(prediction_layers_, *layer->index + 1);
    }
  }
}

std::int64_t LanguageTensors::layer_count() const {
  return layers_.empty() ? 0 : layers_.rbegin()->first + 1;
}

const TensorDesc* LanguageTensors::outside(std::string_view name) const {
  const auto found = outside_.find(name);
  return found == outside_.end() ? nullptr : found->second;
}

const TensorDesc* LanguageTensors::in_some_layer(
    std::initializer_list<std::string_view> names) const {
  for (const auto& [number, layer] : layers_) {
    for (const std::string_view name : names) {
      const auto found = layer.find(name);
      if (found != layer.end()) return found->second;
    }
  }
  return nullptr;
}

std::optional<std::int64_t> StatedArguments::number(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const ArgValue* value = find(name);
    const auto* whole = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (whole == nullptr) continue;
    if (*whole >= 0 && *whole <= kMostSize) return *whole;
    contradict(name, "no tensor has such a size");
  }
  return std::nullopt;
}

std::optional<bool> StatedArguments::flag(std::string_view name) const {
  return find_flag(args_, name);
}

std::optional<std::string> StatedArguments::text(std::string_view name) const {
  const ArgValue* value = find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<std::string_view> StatedArguments::named(
    std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (args_.contains(name)) return name;
  }
  return std::nullopt;
}

void StatedArguments::hold(std::string_view argument) {
  if (find(argument) != nullptr) held_.emplace(argument);
}

void StatedArguments::contradict(std::string_view argument, std::string_view shown) {
  if (is_contradicted(argument)) return;
  held_.emplace(argument);
  const auto value = args_.find(argument);
  const std::string stated = value == args_.end() ? "not set" : to_string(value->second);
  found_.push_back(
      {std::string(argument), translated("argument {} is {}, but {}", argument, stated, shown)});
}

void StatedArguments::expect(std::string_view argument, std::optional<std::int64_t> stated,
                             std::int64_t shown, const TensorDesc& tensor) {
  if (!stated) return;
  hold(argument);
  if (*stated == shown) return;
  contradict(argument, fmt::format("{} shows {}", shown_by(tensor), shown));
}

ArgumentCheck StatedArguments::take() { return {{held_.begin(), held_.end()}, std::move(found_)}; }

bool StatedArguments::is_contradicted(std::string_view argument) const {
  return std::ranges::find(found_, argument, &Contradiction::argument) != found_.end();
}

std::string shown_by(const TensorDesc& tensor) {
  return fmt::format("tensor {} {}", tensor.name, to_string(tensor.shape));
}

std::optional<std::string> hybrid_pattern(const StatedArguments& stated) {
  for (const std::string_view name : {"hybrid_layer_pattern", "hybrid_override_pattern"}) {
    std::optional<std::string> pattern = stated.text(name);
    if (!pattern || pattern->empty()) continue;
    pattern->resize(std::min(pattern->find('/'), pattern->size()));  // prediction layers follow
    std::erase(*pattern, '|');                                       // ends of pipeline stages
    return pattern;
  }
  return std::nullopt;
}

bool is_heterogeneous(const StatedArguments& stated) {
  return stated.flag("heterogeneous_block_specs").value_or(false) ||
         stated.flag("use_double_wide_mlp").value_or(false) ||
         stated.find("heterogeneous_layers_config_path") != nullptr ||
         stated.find("heterogeneous_layers_config_encoded_json") != nullptr;
}

}  // namespace shardwright
